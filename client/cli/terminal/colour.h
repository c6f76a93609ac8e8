#pragma once
// Colours for output to a terminal.
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary::cli {

/// Returns whether standard output shows colours: it is a terminal that supports them, and NO_COLOR is not set
/// (https://no-color.org).
[[nodiscard]] bool output_takes_colour();

enum class Colour : std::uint8_t { none, good, doubtful, bad, heading };
/// Returns the colour of a word for a state in listings and findings, such as active, suspected or bad.
[[nodiscard]] Colour colour_of(std::string_view word) noexcept;
/// Returns the text with sequences around it that switch the colour on and off.
[[nodiscard]] std::string coloured(std::string_view text, Colour colour);

}  // namespace tributary::cli

#pragma once
// Colours, on a terminal alone.
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary::cli {

/// Returns whether standard output takes colours: it is a terminal that knows them, and NO_COLOR is not set
/// (https://no-color.org).
[[nodiscard]] bool output_takes_colour();

enum class Colour : std::uint8_t { none, good, doubtful, bad, heading };
/// Returns the colour of a word by which listings and findings say how something is: active, suspected, bad.
[[nodiscard]] Colour colour_of(std::string_view word) noexcept;
/// Returns the text between the sequences that switch the colour on and off.
[[nodiscard]] std::string coloured(std::string_view text, Colour colour);

}  // namespace tributary::cli

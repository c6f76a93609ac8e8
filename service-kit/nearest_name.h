#pragma once
// Finds the name that a person meant by a misspelt name.
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tributary::service {

/// Returns the distance of two texts: the least number of steps that make them equal. A step inserts, removes or
/// replaces a letter, or swaps two neighbours.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the first of the names that differ least from `name`, if it differs in at most `letters_max` letters. A name
/// of more than 64 bytes is near no name.
[[nodiscard]] std::optional<std::string_view> nearest_name(std::string_view name,
                                                           std::span<const std::string_view> names,
                                                           std::size_t letters_max);

/// Returns the most letters in which a misspelt word of this length may differ from the right word.
[[nodiscard]] constexpr std::size_t letters_misspelt_max(std::size_t length) noexcept {
  return length < 8 ? 1 : length / 4;
}

}  // namespace tributary::service

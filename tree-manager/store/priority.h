#pragma once
// The classes of groups: trees of a higher class displace trees of a lower class where there is no room for both.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary::manager {

enum class Priority : std::uint8_t { low, normal, high };
inline constexpr std::array kPriorities{Priority::low, Priority::normal, Priority::high};

[[nodiscard]] constexpr std::string_view to_string(Priority priority) noexcept {
  return priority == Priority::low ? "low" : priority == Priority::normal ? "normal" : "high";
}
[[nodiscard]] constexpr std::optional<Priority> priority_from_string(std::string_view text) noexcept {
  for (const Priority one : kPriorities) {
    if (to_string(one) == text) return one;
  }
  return std::nullopt;
}

}  // namespace tributary::manager

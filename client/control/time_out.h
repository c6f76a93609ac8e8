#pragma once
// Writes times for error texts, and the beginning of every error text that a time-out causes.
#include <chrono>
#include <string>

namespace tributary::client {

/// Returns a text such as "4 s" or "0.25 s".
[[nodiscard]] inline std::string in_seconds(std::chrono::nanoseconds time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  std::string text = std::to_string(milliseconds / 1000);
  if (milliseconds % 1000 != 0) {
    std::string fraction = std::to_string(1000 + milliseconds % 1000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text + " s";
}

/// Returns a text such as "timed out after 4 s: ".
[[nodiscard]] inline std::string timed_out_after(std::chrono::nanoseconds time) {
  return "timed out after " + in_seconds(time) + ": ";
}

}  // namespace tributary::client

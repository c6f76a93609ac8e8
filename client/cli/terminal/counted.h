#pragma once
// Numbers of things in sentences.
#include <cstdint>
#include <string>

namespace tributary::cli {

/// Returns a text such as "1 switch" or "3 switches".
[[nodiscard]] inline std::string counted(std::uint64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

}  // namespace tributary::cli

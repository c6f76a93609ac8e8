#pragma once
// Reads files of the kernel that hold one line each.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>

namespace tributary::nccl {

/// Returns the file's first line, or an empty text if the file does not exist or cannot be read.
[[nodiscard]] inline std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// Returns the whole number at the beginning of the text, or `otherwise` if the text does not begin with a number.
[[nodiscard]] inline int number_in(const std::string& text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace tributary::nccl

#pragma once
// Reads the kernel's files, which hold one line each.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>

namespace tributary::nccl {

/// Returns an empty text if the file does not exist or cannot be read.
[[nodiscard]] inline std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// Reads the whole number that the text begins with. Returns `otherwise` if it begins with none.
[[nodiscard]] inline int number_in(const std::string& text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace tributary::nccl

#pragma once
// Reads the kernel's files, which hold one line each.
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

}  // namespace tributary::nccl

#pragma once
// What the kernel's files say: one line each.
#include <filesystem>
#include <fstream>
#include <string>

namespace tributary::nccl {

/// Empty for a file that is not there, or refuses to be read.
[[nodiscard]] inline std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace tributary::nccl

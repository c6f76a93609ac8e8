#pragma once
// The inputs that a fuzz target keeps: one text file for each target, tests/fuzz/<area>/corpus/<target>.txt.
// scripts/lib-fuzz-corpus writes these files and describes their lines.
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tributary::fuzz {

struct KeptInput {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

/// Returns the inputs of a text, by name. An error says which line of `source` is malformed, and why. A
/// text without any input is an error, too.
std::expected<std::vector<KeptInput>, std::string> parse_kept_inputs(std::string_view text, const std::string& source);

/// Returns the inputs of a file.
std::expected<std::vector<KeptInput>, std::string> read_kept_inputs(const std::filesystem::path& file);

}  // namespace tributary::fuzz

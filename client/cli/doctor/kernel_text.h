#pragma once
// Reads texts of the kernel: tables of names and numbers, and lists of numbers.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tributary::cli::doctor {

[[nodiscard]] std::vector<std::string_view> lines_in(std::string_view text);
/// Returns the words of a line, split at blanks and tabs.
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view line);
/// Returns the rest of the line after a name at its beginning, such as "Max locked memory" or "Name:", without blanks
/// around it.
[[nodiscard]] std::optional<std::string_view> line_after(std::string_view text, std::string_view name);
/// Returns the first number of the text; 0 if there is none.
[[nodiscard]] std::uint64_t first_number(std::string_view text);
/// Reads a list such as "0-3,8" of at most 65,536 numbers.
[[nodiscard]] std::vector<std::uint32_t> numbers_in_list(std::string_view text);
/// Returns a variable from /proc/self/environ of this process; nullopt if it is not set.
[[nodiscard]] std::optional<std::string> variable_in(std::string_view environment, std::string_view name);

}  // namespace tributary::cli::doctor

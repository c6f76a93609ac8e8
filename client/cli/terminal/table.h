#pragma once
// Columns of text, in the style of kubectl: a line of names, two blanks between columns, no lines drawn.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> names) : rows_{std::move(names)} {}
  /// Adds a line with as many cells as there are names. It replaces control characters, because text from outside must
  /// not control the terminal.
  void add(std::vector<std::string> cells);
  /// Returns the whole text. `colour`: headings and words for states have colours.
  [[nodiscard]] std::string text(bool colour = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string printable(std::string text);
/// Returns a text such as "42s", "7m", "3h" or "12d", in the largest unit that is full.
[[nodiscard]] std::string age_text(std::uint64_t seconds);
/// Returns a text such as "1.5 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// Returns a text such as "100 Gbit/s".
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_second);

}  // namespace tributary::cli

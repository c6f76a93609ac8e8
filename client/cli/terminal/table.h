#pragma once
// Columns of text, as kubectl shows them: a line of names, two blanks between columns, nothing drawn.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> names) : rows_{std::move(names)} {}
  /// Adds a line with as many cells as there are names. Replaces control characters: text from elsewhere must not steer
  /// the terminal.
  void add(std::vector<std::string> cells);
  /// `colour`: a heading stands out, and words that say how something is have colours.
  [[nodiscard]] std::string text(bool colour = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string printable(std::string text);
/// Returns "42s", "7m", "3h" or "12d", as much as is full.
[[nodiscard]] std::string age_text(std::uint64_t seconds);
/// Returns "1.5 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// Returns "100 Gbit/s".
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_second);

}  // namespace tributary::cli

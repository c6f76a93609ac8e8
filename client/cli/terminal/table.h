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
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string printable(std::string text);
/// Returns "1.5 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// Returns "100 Gbit/s".
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_second);

}  // namespace tributary::cli

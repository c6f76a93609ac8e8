#include "client/cli/terminal/table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "client/cli/terminal/colour.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

std::string with_unit(double value, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (value >= step && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return whole ? fmt::format("{:.0f} {}", value, *unit) : fmt::format("{:.1f} {}", value, *unit);
}

/// Returns the number of places on the screen: continuation bytes of UTF-8 need none.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  TRIBUTARY_ASSERT(cells.size() == rows_.front().size(), "a row of {} cells in a table of {} columns", cells.size(),
                   rows_.front().size());
  for (std::string& cell : cells) cell = printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::string Table::text(bool colour) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    TRIBUTARY_ASSERT(row.size() == widths.size(), "a row of {} cells in a table of {} columns", row.size(),
                     widths.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Colour of = &row == &rows_.front() ? Colour::heading : colour_of(row[i]);
      text += colour && !row[i].empty() ? coloured(row[i], of) : row[i];
      if (i + 1 < row.size()) text.append(widths[i] - width(row[i]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return text;
}

std::string age_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / (24 * 3600));
}

std::string bytes_text(std::uint64_t bytes) {
  return with_unit(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string rate_text(std::uint64_t bits_per_second) {
  return with_unit(static_cast<double>(bits_per_second), 1000, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"});
}

}  // namespace tributary::cli

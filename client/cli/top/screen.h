#pragma once
// The terminal as ncurses has it, from the constructor to the destructor.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/top/top_state.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

enum class Key : std::uint8_t { none, quit, up, down, other };

class Screen {
 public:
  /// Takes the terminal over. Errc::unsupported: standard input or output is none, or one that ncurses does not know.
  [[nodiscard]] static Status check_terminal();
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Draws lines from `first` on, each cut at the edge. The lines before `fixed` stay at the top.
  void draw(const std::vector<TopLine>& lines, std::size_t fixed, std::size_t first) const;
  /// Waits for a key, at most this long.
  [[nodiscard]] Key wait(std::chrono::milliseconds limit);
  [[nodiscard]] std::size_t height() const;
};

}  // namespace tributary::cli

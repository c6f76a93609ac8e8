#pragma once
// The terminal under the control of ncurses, from the constructor to the destructor.
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
  /// Checks the terminal. Errc::unsupported: standard input or output is no terminal, or ncurses does not know it.
  [[nodiscard]] static Status check_terminal();
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Draws lines from `first` on; cuts each line at the edge. The lines before `fixed` stay at the top.
  void draw(const std::vector<TopLine>& lines, std::size_t fixed, std::size_t first) const;
  /// Waits for a key, at most for this time.
  [[nodiscard]] Key wait(std::chrono::milliseconds limit);
  [[nodiscard]] std::size_t height() const;
};

}  // namespace tributary::cli

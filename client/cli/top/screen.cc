#include "client/cli/top/screen.h"

#include <ncurses.h>
#include <term.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>

#undef lines  // the macro of term.h

namespace tributary::cli {
namespace {

short pair_of(Colour colour) noexcept {
  return static_cast<short>(colour);
}

attr_t attribute_of(Colour colour, bool coloured) {
  if (colour == Colour::heading) return A_BOLD;
  return coloured && colour != Colour::none ? static_cast<attr_t>(COLOR_PAIR(pair_of(colour))) : A_NORMAL;
}

bool wants_colour() {
  const char* const none = std::getenv("NO_COLOR");
  return (none == nullptr || *none == '\0') && has_colors();
}

}  // namespace

Status Screen::check_terminal() {
  int error = 0;
  const bool there = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (there && setupterm(nullptr, STDOUT_FILENO, &error) == OK) {
    del_curterm(cur_term);  // initscr() loads the description again
    return {};
  }
  return fail(Errc::unsupported,
              "top needs a terminal that ncurses knows (TERM); tributary groups --watch needs no terminal");
}

Screen::Screen() {
  std::setlocale(LC_CTYPE, "");
  initscr();
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  if (!wants_colour()) return;
  start_color();
  use_default_colors();
  init_pair(pair_of(Colour::good), COLOR_GREEN, -1);
  init_pair(pair_of(Colour::doubtful), COLOR_YELLOW, -1);
  init_pair(pair_of(Colour::bad), COLOR_RED, -1);
}

Screen::~Screen() {
  endwin();
}

std::size_t Screen::height() const {
  return static_cast<std::size_t>(getmaxy(stdscr));
}

void Screen::draw(const std::vector<TopLine>& lines, std::size_t fixed, std::size_t first) const {
  erase();
  const int width = getmaxx(stdscr);
  for (std::size_t row = 0; row < height(); ++row) {
    const std::size_t index = row < fixed ? row : row + first;
    if (index >= lines.size()) break;
    const attr_t attribute = attribute_of(lines[index].colour, wants_colour());
    attron(attribute);
    mvaddnstr(static_cast<int>(row), 0, lines[index].text.c_str(), width);
    attroff(attribute);
  }
  refresh();
}

Key Screen::wait(std::chrono::milliseconds limit) {
  timeout(static_cast<int>(limit.count()));
  switch (getch()) {
    case ERR:
      return Key::none;
    case 'q':
      return Key::quit;
    case KEY_UP:
    case 'k':
      return Key::up;
    case KEY_DOWN:
    case 'j':
      return Key::down;
    default:
      return Key::other;
  }
}

}  // namespace tributary::cli

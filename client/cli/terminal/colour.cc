#include "client/cli/terminal/colour.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace tributary::cli {
namespace {

constexpr std::array<std::pair<std::string_view, Colour>, 12> kWords{{{"active", Colour::good},
                                                                      {"in-network", Colour::good},
                                                                      {"good", Colour::good},
                                                                      {"draining", Colour::doubtful},
                                                                      {"resuming", Colour::doubtful},
                                                                      {"ready", Colour::doubtful},
                                                                      {"warning", Colour::doubtful},
                                                                      {"unknown", Colour::doubtful},
                                                                      {"fallback", Colour::bad},
                                                                      {"suspected", Colour::bad},
                                                                      {"expired", Colour::bad},
                                                                      {"bad", Colour::bad}}};

const char* sequence_of(Colour colour) noexcept {
  switch (colour) {
    case Colour::good:
      return "\x1b[32m";
    case Colour::doubtful:
      return "\x1b[33m";
    case Colour::bad:
      return "\x1b[31m";
    case Colour::heading:
      return "\x1b[1m";
    case Colour::none:
      break;
  }
  return "";
}

}  // namespace

bool output_takes_colour() {
  const char* const none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

Colour colour_of(std::string_view word) noexcept {
  const auto* const found = std::ranges::find(kWords, word, &std::pair<std::string_view, Colour>::first);
  return found == kWords.end() ? Colour::none : found->second;
}

std::string coloured(std::string_view text, Colour colour) {
  if (colour == Colour::none) return std::string(text);
  return std::string(sequence_of(colour)).append(text).append("\x1b[0m");
}

}  // namespace tributary::cli

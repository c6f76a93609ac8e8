// The command `tributary top` in a build without ncurses.
#include "client/cli/top/top_command.h"

namespace tributary::cli {

int top(const ManagerOptions&, double) {
  return complain_of(
      {Errc::unsupported, "this tributary was built without ncurses; tributary groups --watch needs no ncurses"});
}

}  // namespace tributary::cli

#include "client/cli/top/top_command.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/top/screen.h"
#include "client/cli/top/top_state.h"

namespace tributary::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kFixedLines = 3;  // title, sums and trouble stay while the user scrolls

void look(manager_client::ManagerClient& client, TopState& state) {
  const auto aggregators = client.get("/v1/aggregators");
  const auto groups = client.get("/v1/groups");
  if (!aggregators) return state.fail(aggregators.error().message);
  if (!groups) return state.fail(groups.error().message);
  try {
    state.take(*aggregators, *groups, steady_clock::now());
  } catch (const nlohmann::json::exception& error) {
    state.fail(std::string("the manager's answer is not what this version of tributary expects: ") + error.what());
  }
}

std::string title_of(const ManagerOptions& options, double interval_seconds) {
  return fmt::format("tributary top  {}  every {:g} s  {:%H:%M:%S}  q: quit, arrows: scroll", manager_url(options),
                     interval_seconds, fmt::localtime(std::time(nullptr)));
}

}  // namespace

int top(const ManagerOptions& options, double interval_seconds) {
  if (const auto ok = Screen::check_terminal(); !ok) return complain_of(ok.error());
  auto client = connect(options);
  if (!client) return complain_of(client.error());
  TopState state;
  Screen screen;
  std::size_t first = 0;
  auto next = steady_clock::now();
  while (true) {
    if (steady_clock::now() >= next) {
      look(*client, state);
      next = steady_clock::now() +
             std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(interval_seconds));
    }
    const auto shown = state.lines(title_of(options, interval_seconds));
    const std::size_t last = shown.size() > screen.height() ? shown.size() - screen.height() : 0;
    first = std::min(first, last);
    screen.draw(shown, kFixedLines, first);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - steady_clock::now());
    switch (screen.wait(std::max(left, std::chrono::milliseconds(1)))) {
      case Key::quit:
        return kExitGood;
      case Key::up:
        first -= first > 0 ? 1U : 0U;
        break;
      case Key::down:
        ++first;
        break;
      case Key::none:
      case Key::other:
        break;
    }
  }
}

}  // namespace tributary::cli

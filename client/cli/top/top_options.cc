#include "client/cli/top/top_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/manager/access_options.h"
#include "client/cli/top/top_command.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

using service::add_number;

}  // namespace

void describe_top(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("top", "Show groups and aggregators live: rates by path");
  const auto options = std::make_shared<ManagerOptions>(ManagerOptions{.seconds_max = 2});
  add_access(*sub, *options);
  const auto interval = std::make_shared<double>(2);
  add_number(*sub, "--interval,-d", *interval, 0.1, 3600,
             {.value = "SECONDS", .help = "Time between two updates", .standard = "2"});
  sub->callback([=, &action] { action = [=] { return top(*options, *interval); }; });
}

}  // namespace tributary::cli

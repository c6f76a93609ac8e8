#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "client/cli/budget/plan_options.h"
#include "client/cli/doctor/doctor_options.h"
#include "client/cli/dump/dump_options.h"
#include "client/cli/manager/listing_options.h"
#include "client/cli/metrics/metrics_options.h"
#include "client/cli/perf/perf_options.h"
#include "client/cli/run/run_options.h"
#include "client/cli/tenants/tenants_command.h"
#include "client/cli/token/token_command.h"
#include "client/cli/top/top_options.h"
#include "client/cli/topology/topology_command.h"
#include "client/cli/trace/trace_options.h"
#include "client/cli/tuning/explain_options.h"
#include "client/cli/verify/verify_options.h"
#include "service-kit/program_options.h"
#include "tributary/tributary.h"

namespace tributary::cli {
namespace {

/// The function that runs the chosen command, after the whole line has been read.
using Action = std::function<int()>;

/// Removes and returns the arguments after the first "--": they are the command of `run`, not options of this program.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

void describe(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       "tributary " + std::to_string(TRIBUTARY_VERSION_MAJOR) + "." +
                           std::to_string(TRIBUTARY_VERSION_MINOR) + "." + std::to_string(TRIBUTARY_VERSION_PATCH),
                       "Print the version, and exit");
  app.footer(
      "Exit codes: 0 success, 1 failure, 64 wrong usage, 69 service unreachable, 75 another rank has failed, 78 wrong "
      "configuration.");
  describe_run(app, command, action);
  describe_perf(app, action);
  describe_verify_bits(app, action);
  describe_explain(app, action);
  describe_doctor(app, action);
  describe_listings(app, action);
  describe_top(app, action);
  describe_dump(app, action);
  describe_trace(app, action);
  describe_metrics(app, action);
  describe_topology(app, action);
  describe_drain(app, action);
  describe_plan(app, action);
  describe_token(app, action);
  describe_tenants(app, action);
  describe_reserve(app, action);
  describe_reservations(app, action);
  app.add_subcommand("help", "Show what a command does: tributary help COMMAND");  // see written_out()
  app.add_subcommand("version", "Show the version");
}

/// Replaces `help`, `help COMMAND...` and `version` by --help and --version. Both words have a --help of their own.
std::vector<std::string> written_out(std::vector<std::string> arguments) {
  if (arguments.size() == 1 && arguments.front() == "version") return {"--version"};
  if (arguments.empty() || arguments.front() != "help") return arguments;
  if (arguments.size() > 1 && arguments[1].starts_with('-')) return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// Refuses a first word that is neither a command nor an option: CLI11 would only say that a command is missing.
void check_first_word(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || app.get_option_no_throw(arguments.front()) != nullptr) return;
  const auto same = [&](const CLI::App* sub) { return sub->check_name(arguments.front()); };
  if (app.get_subcommands(same).empty()) throw service::WrongUse(service::unknown_argument(app, arguments.front()));
}

}  // namespace

int run_command_line(std::vector<std::string> arguments) {
  arguments = written_out(std::move(arguments));
  const std::vector<std::string> command = take_command(arguments);
  CLI::App app("Tributary: in-network reduction as a service", "tributary");
  service::use_help_style(app);
  Action action;
  describe(app, command, action);
  try {
    check_first_word(app, arguments);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 expects this order
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return service::answer(error, app, "tributary", arguments);
  }
  return action();
}

}  // namespace tributary::cli

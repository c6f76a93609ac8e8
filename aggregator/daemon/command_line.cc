#include "aggregator/daemon/command_line.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace tributary::aggregator {
namespace {

struct Flag {
  const char* flag;
  const char* key;
  const char* help;
};

// The options for tests and for people at a terminal. The configuration file has all settings.
constexpr Flag kFlags[] = {
    {"--name", "name", "This aggregator's name"},
    {"--listen", "listen", "The address where ranks connect, host:port; port 0 chooses one; several by commas"},
    {"--http", "http_listen", "The address that serves metrics, host:port; port 0 chooses one"},
    {"--manager", "manager", "The manager, http://host:port"},
    {"--token-file", "token_file", "The secret that the manager asks for"},
    {"--host-id", "host_id", "This host's name in the topology"},
    {"--workers", "workers", "Threads that serve lanes; 0: as many as cores, at most 4"},
    {"--memory", "memory", "The memory that all lanes together may reserve, as 4GiB"},
    {"--state-file", "state_file", "The file that keeps the manager's key from one start to the next"},
    {"--ready-file", "ready_file", "The aggregator writes this file when it serves: JSON with the chosen ports"},
    {"--log-level", "log_level", "trace, debug, info, warn or error"},
    {"--log-format", "log_format", "text or json"},
};

constexpr const char* kAbout =
    "Sums the contributions of ranks and other aggregators, and sends the results back: the data plane of Tributary.\n"
    "SIGTERM drains (a second one ends at once), SIGHUP reads log_level again.";
constexpr const char* kCodes =
    "Exit codes: 0 ended as asked, 1 failed (as a port in use), 64 wrong usage, 78 wrong configuration.";

}  // namespace

std::variant<CommandLine, Exit> read_command_line(int argc, const char* const* argv) {
  CLI::App app(kAbout, "tributary-aggregator");
  app.footer(kCodes);
  app.set_version_flag("--version", "tributary-aggregator " TRIBUTARY_VERSION);
  CommandLine line;
  app.add_option("--config", line.config, "The configuration (YAML); --print-config shows what may be in it");
  app.add_flag("--check", line.check, "Check the configuration and what it names on this host, and exit");
  app.add_flag("--print-config", line.print_config, "Print the effective configuration, with what each setting means");
  std::vector<std::string> values(std::size(kFlags));
  std::vector<CLI::Option*> options;
  for (std::size_t i = 0; i < std::size(kFlags); ++i)
    options.push_back(app.add_option(kFlags[i].flag, values[i], kFlags[i].help));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr), Exit::good;
    std::cerr << "tributary-aggregator: " << error.what() << "\nRun tributary-aggregator --help for what there is.\n";
    return Exit::usage;
  }
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    if (options[i]->count() > 0) line.overrides.push_back({kFlags[i].key, values[i], kFlags[i].flag});
  }
  return line;
}

}  // namespace tributary::aggregator

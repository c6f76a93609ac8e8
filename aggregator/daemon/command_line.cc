#include "aggregator/daemon/command_line.h"

#include "service-kit/program_options.h"

namespace tributary::aggregator {
namespace {

struct Flag {
  const char* flag;
  const char* key;
  const char* value;
};

// The options for tests and for people at a terminal. The configuration file has all settings.
constexpr Flag kFlags[] = {
    {"--name", "name", "NAME"},
    {"--listen", "listen", "HOST:PORT,..."},
    {"--http", "http_listen", "HOST:PORT"},
    {"--manager", "manager", "URL"},
    {"--token-file", "token_file", "FILE"},
    {"--host-id", "host_id", "NAME"},
    {"--workers", "workers", "N"},
    {"--memory", "memory", "BYTES"},
    {"--state-file", "state_file", "FILE"},
    {"--ready-file", "ready_file", "FILE"},
    {"--log-level", "log_level", "WORD"},
    {"--log-format", "log_format", "WORD"},
};

constexpr const char* kAbout =
    "Sums the contributions of ranks and other aggregators, and sends the results back: the data plane of Tributary.\n"
    "SIGTERM drains (a second one ends at once), SIGHUP reads log_level again.";
constexpr const char* kCodes =
    "Exit codes: 0 ended as asked, 1 failed (for example, a port is in use), 64 wrong usage, 78 wrong configuration.";

}  // namespace

std::variant<CommandLine, Exit> read_command_line(int argc, const char* const* argv) {
  CLI::App app(kAbout, "tributary-aggregator");
  service::use_help_style(app);
  app.footer(kCodes);
  app.set_version_flag("--version", "tributary-aggregator " TRIBUTARY_VERSION, "Print the version, and exit");
  CommandLine line;
  service::add_text(app, "--config", line.config,
                    {.value = "FILE", .help = "The configuration (YAML); --print-config shows what may be in it"});
  app.add_flag("--check", line.check, "Check the configuration, and the files and addresses that it names, and exit");
  app.add_flag("--print-config", line.print_config,
               "Print the effective configuration, with the meaning of each setting, and exit");
  std::vector<std::string> values(std::size(kFlags));
  std::vector<CLI::Option*> options;
  for (std::size_t i = 0; i < std::size(kFlags); ++i)
    options.push_back(
        service::add_text(app, kFlags[i].flag, values[i], service::text_of(fields(), kFlags[i].key, kFlags[i].value)));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return service::answer(error, app, "tributary-aggregator", argc, argv) == 0 ? Exit::good : Exit::usage;
  }
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    if (options[i]->count() > 0) line.overrides.push_back({kFlags[i].key, values[i], kFlags[i].flag});
  }
  return line;
}

}  // namespace tributary::aggregator

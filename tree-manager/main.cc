// tributary-manager: reads its settings, opens its state, and serves until a signal ends it.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "service-kit/log_formatter.h"
#include "service-kit/program_options.h"
#include "tree-manager/daemon/archive_command.h"
#include "tree-manager/daemon/parts.h"
#include "tree-manager/daemon/serve.h"
#include "tree-manager/settings/settings.h"

namespace {

using namespace tributary;
using namespace tributary::manager;

constexpr int kExitFailed = 1;
constexpr int kExitConfiguration = 78;

struct Options {
  std::string config;
  std::vector<service::Override> overrides;
  std::string archive;
  bool check = false;
  bool print_config = false;
  bool replace = false;
};

int complain(const Error& error) {
  std::fprintf(stderr, "tributary-manager: %s\n", error.message.c_str());
  return error.code == Errc::bad_config || error.code == Errc::bad_argument ? kExitConfiguration : kExitFailed;
}

int exit_code(const Status& status) {
  return status ? 0 : complain(status.error());
}

void describe(CLI::App& app, Options& options) {
  service::use_help_style(app);
  const auto set = [&](const char* flag, const char* key, const char* value) {
    service::described(
        app.add_option_function<std::string>(
            flag, [&options, flag, key](const std::string& text) { options.overrides.push_back({key, text, flag}); }),
        service::text_of(fields(), key, value));
  };
  service::add_text(app, "--config", options.config,
                    {.value = "FILE", .help = "The configuration (YAML); --print-config shows its settings"});
  set("--listen", "listen", "HOST:PORT");
  set("--state-dir", "state_directory", "FOLDER");
  set("--store", "store", "URL");
  set("--topology", "topology", "FILE");
  set("--ready-file", "ready_file", "FILE");
  set("--log-level", "log_level", "WORD");
  set("--log-format", "log_format", "WORD");
  app.add_flag_callback(
      "--allow-plain-http",
      [&options] { options.overrides.push_back({"allow_plain_http", "true", "--allow-plain-http"}); },
      "Serve plain HTTP also at addresses that other hosts reach, as allow_plain_http: true");
  app.add_flag("--check", options.check,
               "Check the configuration, and the files and addresses that it names, and exit");
  app.add_flag("--print-config", options.print_config,
               "Print the effective configuration, with the meaning of each setting, and exit");
  app.fallthrough();
  CLI::App* const to_file = app.add_subcommand("export", "Write all records of the store into a file, and exit");
  service::add_text(*to_file, "FILE", options.archive,
                    {.value = "FILE", .help = "File to write; managers may run meanwhile"})
      ->required();
  CLI::App* const from_file = app.add_subcommand("import", "Take the records of such a file into the store, and exit");
  service::add_text(*from_file, "FILE", options.archive,
                    {.value = "FILE", .help = "File to read; no manager may run on the store"})
      ->required();
  from_file->add_flag("--replace", options.replace, "Remove what the store has; without this, it must be empty");
  app.set_version_flag("--version", std::string("tributary-manager ") + TRIBUTARY_VERSION,
                       "Print the version, and exit");
  app.footer(
      "Exit codes: 0 ended as asked, 1 failed (for example, a port is in use), 64 wrong usage, 78 wrong "
      "configuration.");
}

/// Returns the settings of the file; flags replace them.
Result<Settings> settings_from(const Options& options) {
  auto settings = load_settings(options.config, options.overrides);
  if (!settings) return settings;
  const auto in_state = [&](std::string& path, const char* name) {
    if (path.empty()) path = settings->path_in_state(name);
  };
  in_state(settings->aggregator_token_file, "aggregator.token");
  in_state(settings->job_token_file, "job.token");
  in_state(settings->identity_key_file, "identity.keys");
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Tributary's manager: knows topology, aggregators and groups, builds trees, hands out tokens",
                 "tributary-manager");
    Options options;
    describe(app, options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return service::answer(error, app, "tributary-manager", argc, argv);
    }
    const auto settings = settings_from(options);
    if (!settings) return complain(settings.error());
    if (options.print_config) {
      std::fputs(print(*settings).c_str(), stdout);
      return 0;
    }
    if (options.check) {
      if (const auto ok = check_start(*settings); !ok) return exit_code(ok);
      std::puts("tributary-manager: the configuration is valid");
      return 0;
    }
    if (app.got_subcommand("export")) return exit_code(export_archive(*settings, options.archive));
    if (app.got_subcommand("import")) return exit_code(import_archive(*settings, options.archive, options.replace));
    spdlog::set_default_logger(spdlog::stderr_logger_mt("tributary-manager"));
    const auto format = service::parse_log_format(settings->log_format);
    spdlog::set_formatter(std::make_unique<service::LogFormatter>(*format, "tributary-manager"));
    spdlog::set_level(spdlog::level::from_str(settings->log_level));
    return exit_code(serve(*settings, [&options] { return settings_from(options); }));
  } catch (const std::exception& error) {
    return complain({Errc::io, std::string("the manager could not start: ") + error.what()});
  }
}

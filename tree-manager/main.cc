// tributary-manager: reads its settings, opens its state, and serves until a signal ends it.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "service-kit/log_formatter.h"
#include "tree-manager/daemon/archive_command.h"
#include "tree-manager/daemon/parts.h"
#include "tree-manager/daemon/serve.h"
#include "tree-manager/settings/settings.h"

namespace {

using namespace tributary;
using namespace tributary::manager;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 64;
constexpr int kExitConfiguration = 78;

struct Options {
  std::string config;
  std::string listen;
  std::string state_directory;
  std::string store;
  std::string topology;
  std::string ready_file;
  std::string log_level;
  std::string log_format;
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
  app.add_option("--config", options.config, "Configuration file (YAML); without it, every setting has its default");
  app.add_option("--listen", options.listen, "host:port to serve on, in place of the file's; port 0 chooses a port");
  app.add_option("--state-dir", options.state_directory,
                 "Directory of the database, the key and the tokens, in place of the file's");
  app.add_option("--store", options.store,
                 "etcd://host:2379,...[/prefix] where several managers keep their records, in place of the file's");
  app.add_option("--topology", options.topology,
                 "Topology file, in place of the one that the configuration file names");
  app.add_option("--ready-file", options.ready_file,
                 "File that the manager writes when it serves: JSON with the chosen port");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error, in place of the file's");
  app.add_option("--log-format", options.log_format, "text or json, in place of the file's");
  app.add_flag("--check", options.check, "Check the configuration and what it names on this host, and exit");
  app.add_flag("--print-config", options.print_config,
               "Print the effective configuration with every default, and exit");
  app.fallthrough();
  CLI::App* const to_file = app.add_subcommand("export", "Write all records of the store into a file, and exit");
  to_file->add_option("FILE", options.archive, "File to write; managers may run meanwhile")->required();
  CLI::App* const from_file = app.add_subcommand("import", "Take the records of such a file into the store, and exit");
  from_file->add_option("FILE", options.archive, "File to read; no manager may run on the store")->required();
  from_file->add_flag("--replace", options.replace, "Remove what the store has; without this, it must be empty");
  app.set_version_flag("--version", std::string("tributary-manager ") + TRIBUTARY_VERSION);
}

/// Returns the settings of the file; flags replace them.
Result<Settings> settings_from(const Options& options) {
  Settings settings;
  if (!options.config.empty()) {
    auto loaded = load_settings(options.config);
    if (!loaded) return loaded;
    settings = std::move(*loaded);
  }
  if (!options.listen.empty()) {
    auto endpoint = parse_endpoint(options.listen);
    if (!endpoint) return fail(Errc::bad_config, "--listen: " + endpoint.error().message);
    settings.listen = std::move(*endpoint);
  }
  if (!options.log_level.empty()) {
    auto parsed = parse_settings("log_level: " + options.log_level, "--log-level");
    if (!parsed) return parsed;
    settings.log_level = parsed->log_level;
  }
  if (!options.log_format.empty()) {
    auto parsed = parse_settings("log_format: " + options.log_format, "--log-format");
    if (!parsed) return parsed;
    settings.log_format = parsed->log_format;
  }
  if (!options.state_directory.empty()) settings.state_directory = options.state_directory;
  if (!options.topology.empty()) settings.topology = options.topology;
  if (!options.store.empty()) settings.store = options.store;
  if (!options.ready_file.empty()) settings.ready_file = options.ready_file;
  if (settings.aggregator_token_file.empty())
    settings.aggregator_token_file = settings.path_in_state("aggregator.token");
  if (settings.job_token_file.empty()) settings.job_token_file = settings.path_in_state("job.token");
  if (settings.identity_key_file.empty()) settings.identity_key_file = settings.path_in_state("identity.keys");
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Tributary's manager: knows topology, aggregators and groups, builds trees, hands out tokens");
    Options options;
    describe(app, options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kExitUsage;
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

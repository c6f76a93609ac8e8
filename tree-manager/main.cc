// tributary-manager: reads its settings, opens its state, and serves until a signal ends it.
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "service-kit/http/http_server.h"
#include "service-kit/log_formatter.h"
#include "service-kit/notify.h"
#include "service-kit/start_checks.h"
#include "tree-manager/api/api.h"
#include "tree-manager/api/audit_log.h"
#include "tree-manager/identity/key_file.h"
#include "tree-manager/settings/settings.h"

namespace {

using namespace tributary;
using namespace tributary::manager;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 64;
constexpr int kExitConfiguration = 78;
constexpr std::chrono::milliseconds kTickPeriod{200};
constexpr std::chrono::milliseconds kStopLimit{2000};

struct Options {
  std::string config;
  std::string listen;
  std::string state_directory;
  std::string topology;
  std::string ready_file;
  std::string log_level;
  std::string log_format;
  bool check = false;
  bool print_config = false;
};

int complain(const Error& error) {
  std::fprintf(stderr, "tributary-manager: %s\n", error.message.c_str());
  return error.code == Errc::bad_config || error.code == Errc::bad_argument ? kExitConfiguration : kExitFailed;
}

void describe(CLI::App& app, Options& options) {
  app.add_option("--config", options.config, "Configuration file (YAML); without it, every setting has its default");
  app.add_option("--listen", options.listen, "host:port to serve on, in place of the file's; port 0 chooses a port");
  app.add_option("--state-dir", options.state_directory,
                 "Directory of the database, the key and the tokens, in place of the file's");
  app.add_option("--topology", options.topology,
                 "Topology file, in place of the one that the configuration file names");
  app.add_option("--ready-file", options.ready_file,
                 "File that the manager writes when it serves: JSON with the chosen port");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error, in place of the file's");
  app.add_option("--log-format", options.log_format, "text or json, in place of the file's");
  app.add_flag("--check", options.check, "Check the configuration and what it names on this host, and exit");
  app.add_flag("--print-config", options.print_config,
               "Print the effective configuration with every default, and exit");
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
  if (!options.ready_file.empty()) settings.ready_file = options.ready_file;
  if (settings.aggregator_token_file.empty())
    settings.aggregator_token_file = settings.path_in_state("aggregator.token");
  if (settings.job_token_file.empty()) settings.job_token_file = settings.path_in_state("job.token");
  if (settings.identity_key_file.empty()) settings.identity_key_file = settings.path_in_state("identity.keys");
  return settings;
}

Result<std::optional<Topology>> topology_of(const Settings& settings) {
  if (settings.topology.empty()) return std::nullopt;
  auto topology = load_topology(settings.topology);
  if (!topology) return std::unexpected(topology.error());
  return std::optional(std::move(*topology));
}

ClusterSettings cluster_settings(const Settings& from) {
  const auto seconds = [](std::chrono::milliseconds value) {
    return std::chrono::duration_cast<std::chrono::seconds>(value);
  };
  return {.aggregator_lease = seconds(from.aggregator_lease),
          .group_lease = seconds(from.group_lease),
          .token_life = seconds(from.token_life),
          .failed_exclusion = seconds(from.failed_exclusion),
          .retry_after = seconds(from.retry_after),
          .window = static_cast<std::uint32_t>(from.window),
          .segment_bytes = static_cast<std::uint32_t>(from.segment_bytes),
          .aggregators_max = static_cast<std::uint32_t>(from.aggregators_max),
          .groups_max = static_cast<std::uint32_t>(from.groups_max),
          .ranks_max = static_cast<std::uint32_t>(from.ranks_max)};
}

service::HttpServerSettings server_settings(const Settings& from) {
  return {.listen = from.listen,
          .server_name = "tributary-manager",
          .thread_name = "http",
          .threads = static_cast<std::uint32_t>(from.threads),
          .connections_max = static_cast<std::uint32_t>(from.connections_max),
          .request_limit = from.request_limit,
          .head_limit = std::min(from.request_limit, service::HttpServerSettings{}.head_limit),
          .idle_limit = from.idle_limit};
}

/// Makes the state directory if it is missing, and locks it: two managers with the same directory would promise the
/// same memory twice.
Status claim_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) {
    return fail(Errc::bad_config, "the state directory " + path + " cannot be made: " + error.message() +
                                      "; make it for the manager's user, or set another with --state-dir");
  }
  if (made) ::chmod(path.c_str(), 0700);
  const std::string lock = path + "/lock";
  const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return fail(Errc::bad_config, "the state directory " + path + " cannot be written: " + std::strerror(errno) +
                                      "; check that it belongs to the manager's user");
  }
  // The lock is held, and its file stays open, to the end of the process.
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  ::close(fd);
  return fail(Errc::io, "another tributary-manager uses the state directory " + path +
                            "; stop it, or give this one another with --state-dir");
}

Status write_ready_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  std::FILE* file = std::fopen(draft.c_str(), "w");
  const bool good = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (good && closed && std::rename(draft.c_str(), path.c_str()) == 0) return {};
  return fail(Errc::bad_config, "the ready file " + path + " cannot be written: " + std::strerror(errno));
}

/// Says once that the manager serves: by the ready file, then on standard output, then to systemd. The file exists
/// before the line is written.
Status announce(const Settings& settings, const Endpoint& local) {
  const nlohmann::json line = {{"ready", true},
                               {"listen", to_string(local)},
                               {"port", local.port},
                               {"pid", ::getpid()},
                               {"state_directory", settings.state_directory},
                               {"aggregator_token_file", settings.aggregator_token_file},
                               {"job_token_file", settings.job_token_file}};
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!settings.ready_file.empty()) {
    if (auto ok = write_ready_file(settings.ready_file, text); !ok) return ok;
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  service::notify_service_manager("READY=1");
  return {};
}

SecretPaths secret_paths(const Settings& settings) {
  return {.signing_key = settings.path_in_state("signing.key"),
          .aggregator_token = settings.aggregator_token_file,
          .job_token = settings.job_token_file};
}

/// Says whether a file begins as SQLite's do; a new one is empty.
bool begins_as_database(const std::string& path) {
  constexpr std::string_view kBegin = "SQLite format 3";
  std::array<char, kBegin.size()> begin{};
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return false;
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::fclose(file);
  return got == 0 || std::string_view(begin.data(), got) == kBegin;
}

/// Checks that a start could make the secrets that are missing. It makes the state directory itself.
Status check_secret_folders(const Settings& settings) {
  const std::pair<const char*, const std::string&> files[] = {{"aggregator_token_file", settings.aggregator_token_file},
                                                              {"job_token_file", settings.job_token_file},
                                                              {"identity_key_file", settings.identity_key_file}};
  for (const auto& [key, path] : files) {
    if (std::filesystem::path(path).parent_path() == settings.state_directory || ::access(path.c_str(), F_OK) == 0)
      continue;
    if (auto ok = service::check_writable_file(key, path); !ok) return ok;
  }
  return {};
}

/// Reports the mistakes that a start would report, but changes nothing: the manager may be running meanwhile.
Status check_start(const Settings& settings) {
  if (const auto topology = topology_of(settings); !topology) return std::unexpected(topology.error());
  if (auto ok = service::check_listen("listen", settings.listen); !ok) return ok;
  if (auto ok = service::check_folder("state_directory", settings.state_directory); !ok) return ok;
  if (auto ok = service::check_writable_file("ready_file", settings.ready_file); !ok) return ok;
  const std::string database = settings.path_in_state("manager.db");
  if (::access(database.c_str(), F_OK) == 0) {
    if (auto ok = service::check_writable_file("the database", database); !ok) return ok;
    if (!begins_as_database(database))
      return fail(Errc::bad_config, database + " is no SQLite database or is damaged; restore it from a backup");
  }
  if (auto ok = service::check_writable_file("audit_file", settings.audit_file); !ok) return ok;
  if (auto ok = check_secret_folders(settings); !ok) return ok;
  if (::access(settings.identity_key_file.c_str(), F_OK) == 0) {
    if (const auto keys = load_identity_keys(settings.identity_key_file); !keys) return std::unexpected(keys.error());
  }
  return check_secrets(secret_paths(settings));
}

/// Reads the keys of identity tokens; the first start makes one.
Result<IdentityKeys> identity_keys(const Settings& settings) {
  const std::string& path = settings.identity_key_file;
  if (::access(path.c_str(), F_OK) != 0) {
    if (auto ok = add_identity_key(path); !ok) return std::unexpected(ok.error());
  }
  return load_identity_keys(path);
}

Result<std::unique_ptr<AuditLog>> audit_log(const Settings& settings) {
  if (settings.audit_file.empty()) return nullptr;
  return AuditLog::open(settings.audit_file);
}

void reload_keys(const Settings& settings, Api& api) {
  auto keys = load_identity_keys(settings.identity_key_file);
  if (!keys) {
    spdlog::error("the identity keys were not reloaded, and the old ones stay in use: {}", keys.error().message);
    return;
  }
  const std::size_t count = keys->size();
  api.use_identity_keys(std::move(*keys));
  spdlog::info("identity tokens of {} {} are good now", count, count == 1 ? "key" : "keys");
}

void reload(const Options& options, Cluster& cluster, Api& api, AuditLog* audit) {
  service::notify_service_manager("RELOADING=1");
  const auto settings = settings_from(options);
  if (!settings) {
    spdlog::error("nothing was reloaded: {}", settings.error().message);
  } else {
    spdlog::set_level(spdlog::level::from_str(settings->log_level));
    auto topology = topology_of(*settings);
    if (!topology) {
      spdlog::error("the topology was not reloaded, and the old one stays in use: {}", topology.error().message);
    } else if (*topology) {
      cluster.reload_topology(std::move(**topology));
    } else if (cluster.topology_from_file()) {
      spdlog::warn("the configuration names no topology any more; the old one stays in use until a restart");
    }
    reload_keys(*settings, api);
    if (const auto ok = audit != nullptr ? audit->reopen() : Status{}; !ok) spdlog::error("{}", ok.error().message);
    spdlog::info("reloaded; log level {}", settings->log_level);
  }
  service::notify_service_manager("READY=1");
}

sigset_t signals_of_interest() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

void serve_until_stopped(const Options& options, Cluster& cluster, Api& api, AuditLog* audit) {
  const sigset_t signals = signals_of_interest();
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    reload(options, cluster, api, audit);
  }
  service::notify_service_manager("STOPPING=1");
}

/// Raises the limit of descriptors as far as the system allows: each connection needs one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Options& options, const Settings& settings) {
  raise_descriptor_limit();
  // The signals are blocked before the first thread starts, so that all threads leave them to sigwait.
  const sigset_t signals = signals_of_interest();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  auto topology = topology_of(settings);
  if (!topology) return complain(topology.error());
  if (auto ok = claim_directory(settings.state_directory); !ok) return complain(ok.error());
  const auto secrets = load_or_make_secrets(secret_paths(settings));
  if (!secrets) return complain(secrets.error());
  const auto keys = identity_keys(settings);
  if (!keys) return complain(keys.error());
  const auto audit = audit_log(settings);
  if (!audit) return complain(audit.error());
  const SystemClock clock;
  const auto store = open_sqlite({.path = settings.path_in_state("manager.db"),
                                  .bytes_max = settings.database_bytes_max,
                                  .fence_min = static_cast<std::uint64_t>(clock.unix_milliseconds())});
  if (!store) return complain(store.error());
  auto cluster = Cluster::open(cluster_settings(settings), **store, secrets->key, clock, std::move(*topology));
  if (!cluster) return complain(cluster.error());

  Api api(**cluster, {.aggregator_token = settings.old_secrets ? secrets->aggregator_token : "",
                      .job_token = settings.old_secrets ? secrets->job_token : "",
                      .reads_need_token = settings.reads_need_token,
                      .tenants_read_all = settings.tenants_read == "all",
                      .identity_keys = *keys,
                      .requests_per_second_max = settings.requests_per_second_max,
                      .audit = audit->get()});
  auto server = service::HttpServer::start(server_settings(settings), api);
  if (!server) return complain(server.error());
  api.show_door((*server)->door());
  (*server)->every(kTickPeriod, [&cluster] { (*cluster)->tick(); });
  spdlog::info("serving on {}, state in {}", to_string((*server)->local()), settings.state_directory);
  if (auto ok = announce(settings, (*server)->local()); !ok) return complain(ok.error());

  serve_until_stopped(options, **cluster, api, audit->get());
  spdlog::info("stopping: running groups go on without the manager");
  (*server)->stop(kStopLimit);
  return 0;
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
      if (const auto ok = check_start(*settings); !ok) return complain(ok.error());
      std::puts("tributary-manager: the configuration is valid");
      return 0;
    }
    spdlog::set_default_logger(spdlog::stderr_logger_mt("tributary-manager"));
    const auto format = service::parse_log_format(settings->log_format);
    spdlog::set_formatter(std::make_unique<service::LogFormatter>(*format, "tributary-manager"));
    spdlog::set_level(spdlog::level::from_str(settings->log_level));
    return run(options, *settings);
  } catch (const std::exception& error) {
    return complain({Errc::io, std::string("the manager could not start: ") + error.what()});
  }
}

#include "tree-manager/daemon/serve.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "service-kit/http/http_server.h"
#include "service-kit/notify.h"
#include "tree-manager/api/api.h"
#include "tree-manager/daemon/parts.h"
#include "tree-manager/daemon/reload.h"
#include "tree-manager/identity/key_file.h"
#include "tree-manager/replicas/replica.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {
namespace {

constexpr std::chrono::milliseconds kTickPeriod{200};
constexpr std::chrono::milliseconds kStopLimit{2000};

Status write_ready_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  std::FILE* file = std::fopen(draft.c_str(), "w");
  const bool good = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (good && closed && std::rename(draft.c_str(), path.c_str()) == 0) return {};
  return fail(Errc::bad_config, "the ready file " + path + " cannot be written: " + std::strerror(errno));
}

/// Reports once that the manager serves: by the ready file, then on standard output, then to systemd. The file exists
/// before a reader sees the line.
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

void reload_keys(const Settings& settings, Api& api) {
  auto keys = load_identity_keys(settings.identity_key_file);
  if (!keys) {
    spdlog::error("the identity keys were not reloaded, and the old ones stay in use: {}", keys.error().message);
    return;
  }
  const std::size_t count = keys->size();
  api.authenticator().use_keys(std::move(*keys));
  spdlog::info("identity tokens of {} {} are valid now", count, count == 1 ? "key" : "keys");
}

/// Writes to the audit log that the manager signs with another key.
void record_new_key(AuditLog* audit, const PublicKey& key) {
  if (audit == nullptr) return;
  const std::int64_t now = SystemClock().unix_milliseconds() / 1000;
  audit->write({.from = "this host",
                .method = "SIGHUP",
                .path = "signing.key",
                .status = 200,
                .why = "public key " + to_base64(key)},
               now);
}

/// Takes the signing key and the old secrets from their files. Makes those whose files were moved away.
void reload_secrets(const Settings& settings, Cluster& cluster, Api& api, AuditLog* audit) {
  const auto secrets = load_or_make_secrets(secret_paths(settings));
  if (!secrets) {
    spdlog::error("the signing key and the tokens were not reloaded, and the old ones stay in use: {}",
                  secrets.error().message);
    return;
  }
  api.authenticator().use_old_secrets({.aggregator_token = secrets->aggregator_token, .job_token = secrets->job_token});
  if (secrets->key.public_key() == cluster.signing().now()->signing.public_key()) return;
  cluster.signing().use(secrets->key);
  spdlog::warn("the manager signs with another key from now on; aggregators learn it at their next renewal");
  record_new_key(audit, secrets->key.public_key());
}

void reload_certificates(const Settings& settings, LiveCertificates& live) {
  auto certificates = CertificateIdentities::load(settings.certificate_file);
  if (certificates) return live.use(std::move(*certificates));
  spdlog::error("the identities of certificates were not reloaded, and the old ones stay in use: {}",
                certificates.error().message);
}

Result<bool> reload_topology(const Settings& settings, Cluster& cluster) {
  auto topology = topology_of(settings);
  if (!topology) {
    spdlog::error("the topology was not reloaded, and the old one stays in use: {}", topology.error().message);
    return false;
  }
  if (*topology) {
    if (auto ok = cluster.reload_topology(std::move(**topology)); !ok) return std::unexpected(ok.error());
    return true;
  }
  if (cluster.topology_from_file()) {
    spdlog::warn("the configuration names no topology any more; the old one stays in use until a restart");
  }
  return true;
}

sigset_t signals_of_interest() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

void serve_until_stopped(Reloader reloader) {
  const sigset_t signals = signals_of_interest();
  constexpr timespec kPause{.tv_sec = 1, .tv_nsec = 0};  // between two tries of changes that wait for the store
  while (true) {
    const int signal = reloader.waits() ? sigtimedwait(&signals, nullptr, &kPause) : sigwaitinfo(&signals, nullptr);
    if (signal == SIGHUP) {
      reloader.begin();
    } else if (signal > 0) {
      break;
    } else if (errno == EAGAIN && reloader.waits()) {
      reloader.go_on();
    }
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

ApiSettings api_settings(const Settings& settings, const Parts& parts, const ClusterSettings& cluster) {
  return {.aggregator_token = settings.old_secrets ? parts.secrets.aggregator_token : "",
          .job_token = settings.old_secrets ? parts.secrets.job_token : "",
          .reads_need_token = settings.reads_need_token,
          .tenants_read_all = settings.tenants_read == "all",
          .identity_keys = parts.identity_keys,
          .certificates = parts.certificates,
          .requests_per_second_max = settings.requests_per_second_max,
          .audit = parts.audit.get(),
          .events = cluster.events};
}

/// The only manager of its cluster, whose records are in SQLite.
Status serve_alone(const Settings& settings, Parts parts, const ReadSettings& read_again) {
  const SystemClock clock;
  const auto store = open_sqlite({.path = settings.path_in_state("manager.db"),
                                  .bytes_max = settings.database_bytes_max,
                                  .fence_min = static_cast<std::uint64_t>(clock.unix_milliseconds())});
  if (!store) return std::unexpected(store.error());
  const ClusterSettings limits = cluster_settings(settings);
  auto cluster = Cluster::open(limits, **store, parts.secrets.key, clock, std::move(parts.topology));
  if (!cluster) return std::unexpected(cluster.error());
  Api api(**cluster, api_settings(settings, parts, limits));
  auto server = service::HttpServer::start(server_settings(settings, parts.tls), api);
  if (!server) return std::unexpected(server.error());
  api.show_door((*server)->door());
  (*server)->every(kTickPeriod, [&cluster] { (*cluster)->tick(); });
  spdlog::info("serving on {}, state in {}", to_string((*server)->local()), settings.state_directory);
  if (auto ok = announce(settings, (*server)->local()); !ok) return ok;
  const auto files = [&](const Settings& again) {
    reload_secrets(again, **cluster, api, parts.audit.get());
    reload_keys(again, api);
    reload_certificates(again, *parts.certificates);
    (*server)->reload_tls();
  };
  const auto records = [&](const Settings& again) { return reload_topology(again, **cluster); };
  serve_until_stopped(Reloader(read_again, parts.audit.get(), {.files = files, .records = records}));
  spdlog::info("stopping: running groups go on without the manager");
  (*server)->stop(kStopLimit);
  return {};
}

/// One of several managers, whose records are in etcd.
Status serve_among_others(const Settings& settings, Parts parts, const ReadSettings& read_again) {
  const SystemClock clock;
  auto etcd = etcd_settings(settings);
  if (!etcd) return std::unexpected(etcd.error());
  auto between = tls_between_managers(settings);
  if (!between) return std::unexpected(between.error());
  const PassingSettings passing{.request_limit = settings.request_limit, .tls = std::move(*between)};
  const ClusterSettings of_cluster = cluster_settings(settings);
  auto replica = Replica::open({.etcd = std::move(*etcd),
                                .lease = settings.leader_lease,
                                .cluster = of_cluster,
                                .passing = passing,
                                .files = {.paths = secret_paths(settings), .identity_keys = settings.identity_key_file},
                                .topology =
                                    [&read_again] {
                                      const auto now = read_again();
                                      return now ? topology_of(*now) : std::unexpected(now.error());
                                    }},
                               parts.secrets.key, clock, api_settings(settings, parts, of_cluster));
  if (!replica) return std::unexpected(replica.error());
  // Requests that wait for the leader have threads of their own, so this manager keeps threads for its own answers.
  service::HttpServerSettings limits = server_settings(settings, parts.tls);
  limits.threads += static_cast<std::uint32_t>(passing.requests_max);
  auto server = service::HttpServer::start(limits, (*replica)->handler());
  if (!server) return std::unexpected(server.error());
  (*replica)->api().show_door((*server)->door());
  (*server)->every(kTickPeriod, [&replica] { (*replica)->tick(); });
  const std::string url = advertised_url(settings, (*server)->local());
  (*replica)->start(url);
  spdlog::info("serving on {}, for other managers at {}; records in {}", to_string((*server)->local()), url,
               settings.store);
  if (auto ok = announce(settings, (*server)->local()); !ok) return ok;
  const auto files = [&](const Settings& again) {
    reload_certificates(again, *parts.certificates);
    (*server)->reload_tls();
  };
  const auto records = [&](const Settings&) {
    const PublicKey before = (*replica)->public_key();
    auto taken = (*replica)->reload();
    if ((*replica)->public_key() != before) record_new_key(parts.audit.get(), (*replica)->public_key());
    return taken;
  };
  serve_until_stopped(Reloader(read_again, parts.audit.get(), {.files = files, .records = records}));
  spdlog::info("stopping: another manager may lead at once");
  (*replica)->stop();
  (*server)->stop(kStopLimit);
  return {};
}

}  // namespace

Status serve(const Settings& settings, const ReadSettings& read_again) {
  raise_descriptor_limit();
  // Block the signals before the first thread starts, so that no thread but the caller of sigwait() gets them.
  const sigset_t signals = signals_of_interest();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  if (auto ok = claim_directory(settings.state_directory); !ok) return ok;
  auto parts = read_parts(settings);
  if (!parts) return std::unexpected(parts.error());
  return settings.store.empty() ? serve_alone(settings, std::move(*parts), read_again)
                                : serve_among_others(settings, std::move(*parts), read_again);
}

}  // namespace tributary::manager

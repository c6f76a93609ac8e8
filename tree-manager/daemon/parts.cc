#include "tree-manager/daemon/parts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "service-kit/start_checks.h"
#include "tree-manager/identity/key_file.h"
#include "tree-manager/store/etcd/etcd_url.h"

namespace tributary::manager {
namespace {

/// Reads the keys of identity tokens. At the first start, makes one key.
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

/// Returns whether a file is empty, as a new database is, or begins like a file of SQLite.
bool begins_as_database(const std::string& path) {
  constexpr std::string_view kBegin = "SQLite format 3";
  std::array<char, kBegin.size()> begin{};
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return false;
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::fclose(file);
  return got == 0 || std::string_view(begin.data(), got) == kBegin;
}

/// Checks that a start could make the missing secrets. A start also makes the state directory.
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

/// Returns nullptr for plain HTTP.
Result<std::shared_ptr<service::TlsContext>> tls_of(const Settings& settings) {
  if (auto ok = check_http(settings); !ok) return std::unexpected(ok.error());
  if (settings.tls.cert.empty()) return nullptr;
  return service::TlsContext::open(service::TlsContext::Side::server, settings.tls);
}

}  // namespace

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
          .security = parse_packet_security(from.security).value_or(PacketSecurity::encrypt),
          .window = static_cast<std::uint32_t>(from.window),
          .segment_bytes = static_cast<std::uint32_t>(from.segment_bytes),
          .aggregators_max = static_cast<std::uint32_t>(from.aggregators_max),
          .groups_max = static_cast<std::uint32_t>(from.groups_max),
          .ranks_max = static_cast<std::uint32_t>(from.ranks_max)};
}

Result<std::shared_ptr<service::TlsContext>> tls_between_managers(const Settings& settings) {
  if (settings.tls.cert.empty()) return nullptr;
  // This manager shows no certificate of its own: a request that it passes on has only the first caller's rights.
  return service::TlsContext::open(service::TlsContext::Side::client,
                                   {.ca = settings.tls.ca, .cert = "", .key = "", .crl = settings.tls.crl});
}

service::HttpServerSettings server_settings(const Settings& from, std::shared_ptr<service::TlsContext> tls) {
  return {.listen = from.listen,
          .server_name = "tributary-manager",
          .thread_name = "http",
          .threads = static_cast<std::uint32_t>(from.threads),
          .connections_max = static_cast<std::uint32_t>(from.connections_max),
          .request_limit = from.request_limit,
          .head_limit = std::min(from.request_limit, service::HttpServerSettings{}.head_limit),
          .idle_limit = from.idle_limit,
          .tls = std::move(tls),
          .handshakes_per_second_max = from.tls_handshakes_per_second_max};
}

SecretPaths secret_paths(const Settings& settings) {
  return {.signing_key = settings.path_in_state("signing.key"),
          .aggregator_token = settings.aggregator_token_file,
          .job_token = settings.job_token_file};
}

Result<EtcdSettings> etcd_settings(const Settings& settings) {
  auto etcd = parse_etcd_url(settings.store);
  if (!etcd) return etcd;
  etcd->tls = settings.store_tls;
  if (settings.store_user.empty()) return etcd;
  auto password = read_secret(settings.store_password_file);
  if (!password) return std::unexpected(password.error());
  etcd->user = settings.store_user;
  etcd->password = std::move(*password);
  return etcd;
}

std::string advertised_url(const Settings& settings, const Endpoint& local) {
  if (!settings.advertise.empty()) return settings.advertise;
  Endpoint at{settings.listen.host, local.port};
  if (at.host == "0.0.0.0" || at.host == "::") {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) at.host = name.data();
  }
  return (settings.tls.cert.empty() ? "http://" : "https://") + to_string(at);
}

Result<Parts> read_parts(const Settings& settings) {
  auto topology = topology_of(settings);
  if (!topology) return std::unexpected(topology.error());
  auto tls = tls_of(settings);
  if (!tls) return std::unexpected(tls.error());
  auto certificates = CertificateIdentities::load(settings.certificate_file);
  if (!certificates) return std::unexpected(certificates.error());
  auto secrets = load_or_make_secrets(secret_paths(settings));
  if (!secrets) return std::unexpected(secrets.error());
  auto keys = identity_keys(settings);
  if (!keys) return std::unexpected(keys.error());
  auto audit = audit_log(settings);
  if (!audit) return std::unexpected(audit.error());
  return Parts{std::move(*topology),
               std::move(*secrets),
               std::move(*keys),
               std::move(*audit),
               std::make_shared<LiveCertificates>(std::move(*certificates)),
               std::move(*tls)};
}

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
  // The lock is held, and its file stays open, until the process ends.
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  ::close(fd);
  return fail(Errc::io, "another tributary-manager uses the state directory " + path +
                            "; stop it, or give this manager another directory with --state-dir");
}

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
  if (!settings.store.empty()) {
    const auto etcd = etcd_settings(settings);
    if (!etcd) return std::unexpected(etcd.error());
    if (const auto client = EtcdClient::create(*etcd); !client) return std::unexpected(client.error());
  }
  if (auto ok = service::check_writable_file("audit_file", settings.audit_file); !ok) return ok;
  if (auto ok = check_secret_folders(settings); !ok) return ok;
  if (const auto tls = tls_of(settings); !tls) return std::unexpected(tls.error());
  if (const auto file = CertificateIdentities::load(settings.certificate_file); !file)
    return std::unexpected(file.error());
  if (::access(settings.identity_key_file.c_str(), F_OK) == 0) {
    if (const auto keys = load_identity_keys(settings.identity_key_file); !keys) return std::unexpected(keys.error());
  }
  if (auto ok = check_secrets(secret_paths(settings)); !ok) return ok;
  // Checks last what does not come from the configuration.
  if (auto ok = service::check_lock("state_directory", settings.path_in_state("lock")); !ok) return ok;
  return service::check_port("listen", settings.listen);
}

}  // namespace tributary::manager

#pragma once
// The parts of a manager that its settings describe: the contents of its files, and the settings of other parts.
#include <memory>
#include <optional>
#include <string>

#include "service-kit/http/http_server.h"
#include "tree-manager/api/audit_log.h"
#include "tree-manager/api/certificate_identities.h"
#include "tree-manager/identity/identity_token.h"
#include "tree-manager/service/cluster.h"
#include "tree-manager/service/secrets.h"
#include "tree-manager/settings/settings.h"
#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {

struct Parts {
  std::optional<Topology> topology;  // topology of the configured file
  Secrets secrets;
  IdentityKeys identity_keys;
  std::unique_ptr<AuditLog> audit;  // nullptr: there is no audit log
  std::shared_ptr<LiveCertificates> certificates;
  std::shared_ptr<service::TlsContext> tls;  // nullptr: plain HTTP
};
/// Reads the files, and makes secrets that do not exist.
[[nodiscard]] Result<Parts> read_parts(const Settings& settings);
[[nodiscard]] Result<std::optional<Topology>> topology_of(const Settings& settings);

[[nodiscard]] ClusterSettings cluster_settings(const Settings& from);
[[nodiscard]] service::HttpServerSettings server_settings(const Settings& from,
                                                          std::shared_ptr<service::TlsContext> tls);
/// Opens the files of TLS to believe other managers; nullptr: managers talk to each other in plain HTTP.
[[nodiscard]] Result<std::shared_ptr<service::TlsContext>> tls_between_managers(const Settings& settings);
[[nodiscard]] SecretPaths secret_paths(const Settings& settings);
/// Also reads the password. Errc::bad_config: `store` names no etcd, or other users can read the password.
[[nodiscard]] Result<EtcdSettings> etcd_settings(const Settings& settings);
/// Returns the URL at which other managers reach this manager, which listens at `local`.
[[nodiscard]] std::string advertised_url(const Settings& settings, const Endpoint& local);

/// Makes the state directory if it is missing, and locks it: two managers on one directory would hand out the same
/// memory twice.
[[nodiscard]] Status claim_directory(const std::string& path);
/// Reports the reasons for which a start would fail now, and changes nothing. Errc::io: the configuration is right, but
/// another process, such as a running manager, holds the state directory or the port.
[[nodiscard]] Status check_start(const Settings& settings);

}  // namespace tributary::manager

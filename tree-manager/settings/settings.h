#pragma once
// The settings of tributary-manager. One table (settings.cc) gives each setting its unit, default, range and line of
// help; the manager reads, prints and explains files by this table.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "service-kit/settings_table.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

struct Settings {
  Endpoint listen{"0.0.0.0", 7470};
  std::string state_directory = "/var/lib/tributary-manager";
  std::string store;                  // "etcd://..."; empty: SQLite in the state directory
  std::string store_user;             // user of etcd; empty: etcd asks for none
  std::string store_password_file;    // path; empty: none
  service::TlsFiles store_tls;        // as a client of an etcd that speaks TLS
  std::string advertise;              // URL where other managers reach this manager; empty: by `listen`
  std::string topology;               // path; empty: the topology that was put over the API, or a flat one
  std::string aggregator_token_file;  // empty: <state_directory>/aggregator.token
  std::string job_token_file;         // empty: <state_directory>/job.token
  std::string identity_key_file;      // empty: <state_directory>/identity.keys
  std::string audit_file;             // empty: none
  service::TlsFiles tls;              // without `cert`: plain HTTP
  std::string certificate_file;       // empty: client certificates prove nothing
  bool allow_plain_http = false;      // plain HTTP also at addresses that other hosts reach
  std::uint64_t tls_handshakes_per_second_max = 500;  // handshakes from one address; 0: no limit
  std::string ready_file;                             // empty: none
  std::string log_level = "info";
  std::string log_format = "text";
  bool reads_need_token = false;
  std::string tenants_read = "own";
  bool old_secrets = true;
  std::string security = "off";
  std::uint64_t threads = 2;
  std::uint64_t requests_per_second_max = 1000;
  std::uint64_t connections_max = 1024;
  std::chrono::milliseconds request_limit{10'000};
  std::chrono::milliseconds idle_limit{60'000};
  std::chrono::milliseconds leader_lease{5'000};
  std::chrono::milliseconds aggregator_lease{10'000};
  std::chrono::milliseconds group_lease{15'000};
  std::chrono::milliseconds token_life{120'000};
  std::chrono::milliseconds failed_exclusion{300'000};
  std::chrono::milliseconds retry_after{2'000};
  std::uint64_t window = 0;         // number of segments; 0: by the links' rate
  std::uint64_t segment_bytes = 0;  // 0: by the links' rate
  std::uint64_t aggregators_max = 16384;
  std::uint64_t groups_max = 65536;
  std::uint64_t ranks_max = 1U << 17;
  std::uint64_t database_bytes_max = 0;  // 0: no limit but the disk

  [[nodiscard]] std::string path_in_state(const std::string& name) const { return state_directory + "/" + name; }
};

/// Every setting, in the order of the documentation.
[[nodiscard]] const std::vector<service::SettingField<Settings>>& fields();

/// Reads YAML, then the overrides. Errc::bad_config lists every mistake, one a line, with file, line, key, value, and
/// what is allowed.
[[nodiscard]] Result<Settings> parse_settings(const std::string& text, const std::string& file,
                                              const std::vector<service::Override>& overrides = {});
/// Reads the file at `path`; an empty path means no file.
[[nodiscard]] Result<Settings> load_settings(const std::string& path,
                                             const std::vector<service::Override>& overrides = {});
/// Refuses plain HTTP at an address that other hosts reach, unless a setting allows it; and files of TLS without a
/// certificate.
[[nodiscard]] Status check_http(const Settings& settings);
/// Writes YAML that load_settings() can read. Each field has its meaning, unit, range and default.
[[nodiscard]] std::string print(const Settings& settings);

}  // namespace tributary::manager

#pragma once
// The settings of an aggregator: one typed struct, and one table with the spelling, the allowed values and the help of
// every field.
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/settings_table.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::aggregator {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error };

/// The values with their defaults; help, bounds and spelling are in settings_fields.cc.
struct Settings {
  using Duration = std::chrono::microseconds;
  std::string name;     // empty: the host's name
  std::string host_id;  // empty: the host's name
  std::string manager;  // URL; the only setting without a usable default
  std::string token_file;
  service::TlsFiles tls;  // `ca`: for a manager over HTTPS; `cert`, `key`: to serve metrics over HTTPS
  std::string state_file;
  std::string ready_file;
  std::string transport = "tcp";
  bool shared_memory = true;
  std::uint64_t map_max = 8ULL << 30;
  bool late_ranks = true;
  std::vector<Endpoint> listen{{"0.0.0.0", 7471}};  // one address for each device
  Endpoint http_listen{"0.0.0.0", 7472};
  std::vector<std::string> advertise;  // empty, or one address for each address of `listen`
  std::uint32_t workers = 0;           // 0: min(4, cores)
  std::uint64_t memory = 4ULL << 30;
  std::uint32_t children_max = 64;
  std::uint64_t line_rate = 0;  // in bits per second; 0: the interfaces' rate
  std::string link_shares = "off";
  std::string link_shares_parent;  // a class's handle; empty: the root of each interface
  std::uint32_t unjoined_max = 256;
  std::uint32_t connections_max = 16384;
  std::uint32_t tenant_connections_max = 8192;  // 0: no limit, as in the two settings below
  std::uint32_t tenant_half_open_max = 4096;
  std::uint32_t tenant_joins_per_second_max = 2000;
  std::uint32_t http_connections_max = 256;
  Duration join_limit = std::chrono::seconds(5);
  Duration form_limit = std::chrono::seconds(30);
  Duration flush_limit = std::chrono::seconds(5);
  Duration drain_limit = std::chrono::seconds(10);
  Duration drain_grace = std::chrono::seconds(30);
  Duration user_timeout = std::chrono::seconds(20);
  Duration packet_peer_timeout = std::chrono::minutes(5);  // the default equals the ranks' time-out
  Duration hang_after = std::chrono::milliseconds(500);
  Duration keepalive = std::chrono::seconds(10);
  Duration busy_poll{};
  std::string security = "off";         // the least protection that connections must have
  std::string packet_security = "off";  // the old name: the stricter of the two counts
  Duration packet_delay_target = std::chrono::microseconds(500);
  std::uint32_t packet_window_initial = 10;  // packets
  std::uint32_t packet_window_max = 4096;    // packets
  bool packet_ecn = true;
  std::uint32_t packet_dscp = 0;
  std::uint32_t packet_datagram_bytes_max = 16384;
  // Settings for transport = verbs
  std::string rdma_devices = "auto";  // separated by commas
  std::uint32_t rdma_queue_pairs = 1;
  transport::RdmaPath rdma_path;
  // Settings for transport = dpdk
  std::string dpdk_device;
  std::string dpdk_addresses;  // separated by commas, like gateways and cores
  std::string dpdk_gateways;
  std::string dpdk_cores;
  std::uint32_t dpdk_vlan = 0;
  std::uint32_t dpdk_mtu = 0;
  std::uint32_t dpdk_descriptors = 1024;
  std::string dpdk_gpu;
  std::string dpdk_huge_pages = "prefer";
  Duration dpdk_sleep{};
  std::string dpdk_file_prefix;
  std::string dpdk_arguments;
  LogLevel log_level = LogLevel::info;
  std::string log_format = "text";
};

inline constexpr std::size_t kListenMax = 16;  // number of addresses: one for each of kLanesMax lanes

using Field = service::SettingField<Settings>;
/// All settings, in the order of the documentation.
[[nodiscard]] std::span<const Field> fields();

/// A setting from a flag, which replaces the file's value.
using service::Override;

/// Applies the defaults, then the file, then the overrides. Errc::bad_config lists every mistake on a line of its own,
/// with file, line, key, value, and the allowed values.
[[nodiscard]] Result<Settings> read_settings(std::string_view yaml, std::string_view file,
                                             const std::vector<Override>& overrides);
/// Reads the file at `path` as read_settings() does; an empty path means no file. Errc::bad_config has advice if the
/// file cannot be read.
[[nodiscard]] Result<Settings> load_settings(const std::string& path, const std::vector<Override>& overrides);

/// Opens the files of TLS for http_listen; nullptr for plain HTTP. Returns the errors of TlsContext::open().
[[nodiscard]] Result<std::shared_ptr<service::TlsContext>> status_tls(const Settings& settings);

/// Fills in the settings with a default that depends on the host: name, host_id, workers, state_file.
void resolve_host_defaults(Settings& settings);

/// Returns the effective configuration as a file that read_settings() reads back: every setting with its meaning, its
/// allowed values and its default.
[[nodiscard]] std::string print_settings(const Settings& settings);

[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

}  // namespace tributary::aggregator

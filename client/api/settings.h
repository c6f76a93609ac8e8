#pragma once
// The user's settings, and their order of precedence: tributary_config, the environment, the configuration file, the
// defaults.
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/api/dpdk_module.h"
#include "client/api/log.h"
#include "client/api/udp_rank.h"
#include "client/communicator/communicator.h"
#include "client/gpu/path_choice.h"
#include "tributary/transport/rdma_path.h"
#include "tributary/tributary.h"

namespace tributary::client {

struct ClientSettings {
  std::string manager;                                     // URL; empty: no service, the fallback alone
  PathMode path = PathMode::automatic;                     //
  bool require_in_network = false;                         // no communicator rather than one that falls back
  TuningMode tuning = TuningMode::automatic;               //
  std::string tuning_file;                                 // for TuningMode::table; read by rank 0 alone
  bool local = true;                                       // all ranks of one host use its memory
  bool shared_memory = true;                               // over tcp: shares memory with processes of this host
  bool attach = true;                                      // cross-memory attach between ranks of a host
  gpu::DirectMode gpudirect = gpu::DirectMode::automatic;  // how the network reaches GPU memory
  std::vector<std::string> transports;                     // in order of preference; empty: the library chooses
  PacketSecurity packet_security = PacketSecurity::off;    // over udp
  UdpRank udp;                                             // over udp
  DpdkRank dpdk;                                           // the device of transport dpdk
  std::uint32_t lanes = 0;                                 // lanes wanted, 1 to kLanesMax; 0: as many as save time
  std::chrono::milliseconds timeout{300'000};              // 1 ms to ten years
  std::chrono::milliseconds hang_after{500};               // 50 ms to a minute; 0: ranks do not ask aggregators
  std::uint64_t link_rate = 0;                             // bits per second; 0: the interface's rate
  std::uint32_t io_threads = 0;                            // threads over tcp, 1 to kIoThreadsMax; 0: by rate and cores
  std::chrono::milliseconds begin_within{500};             // up to a minute
  std::string interface_name;                              // empty: the library chooses
  std::vector<std::string> rdma_devices;                   // over verbs, lane by lane; empty: the library chooses
  std::uint32_t rdma_queue_pairs = 1;                      // over verbs: queue pairs of each connection, 1 to 8
  transport::RdmaPath rdma_path;                           // over verbs
  bool rdma_on_demand = false;                             // over verbs: memory is registered on demand
  std::chrono::microseconds rdma_busy_poll{};              // over verbs: how long a waiting thread spins, up to 1 s
  std::string host_id;                                     // at most kNameBytesMax; by default the host's name
  LogLevel log = LogLevel::info;
  service::LogFormat log_format = service::LogFormat::text;
  std::string token_file;                // empty: requests carry no token
  std::string job = "default";           // at most kNameBytesMax
  std::function<bool()> still_wanted{};  // from tributary_config alone: asked while the ranks meet; empty: not asked
};

/// The description of one setting.
struct SettingHelp {
  std::string_view key;       // its name in the configuration file
  std::string_view variable;  // its name in the environment
  std::string_view default_text;
  std::string_view allowed;
  std::string_view help;
};
[[nodiscard]] std::span<const SettingHelp> setting_help();

/// Returns the value of a variable, or nullptr; std::getenv except in tests.
using Environment = std::function<const char*(const char*)>;

/// `config` may be nullptr. Errc::bad_config names the file and line, variable or member, the value, and the allowed
/// values; bad_argument and unsupported are about the struct itself. An empty variable counts as not set.
[[nodiscard]] Result<ClientSettings> load_settings(const tributary_config* config, const Environment& environment);
/// Uses the process's own environment.
[[nodiscard]] Result<ClientSettings> load_settings(const tributary_config* config);

/// Sets one value; `where` begins the error: "TRIBUTARY_LANES", "/etc/tributary.yaml:3: lanes". `key` is one of
/// setting_help()'s.
[[nodiscard]] Status set(ClientSettings& settings, std::string_view key, const std::string& value,
                         const std::string& where);

}  // namespace tributary::client

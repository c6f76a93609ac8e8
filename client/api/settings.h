#pragma once
// The user's settings. Sources in their order of precedence: tributary_config, the environment, the configuration file,
// the defaults.
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
#include "client/operation/value_numbers.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/numerics.h"
#include "tributary/transport/rdma_path.h"
#include "tributary/tributary.h"

namespace tributary::client {

struct ClientSettings {
  std::string manager;                                     // the manager's URL; empty: no service, only the fallback
  service::TlsFiles tls;                                   // for a manager over HTTPS
  PathMode path = PathMode::automatic;                     // the path that operations may take
  bool require_in_network = false;                         // end the communicator with an error if it has no trees
  Numerics numerics = Numerics::fast;                      // how sums of floats are rounded
  ValueCheck check_values = ValueCheck::off;               // what is done with NaN and other values
  TuningMode tuning = TuningMode::automatic;               // the way to choose between trees and fallback
  std::string tuning_file;                                 // for TuningMode::table; only rank 0 reads it
  bool local = true;                                       // the ranks of one host reduce in shared memory
  bool late_ranks = true;                                  // looks for late ranks
  bool shared_memory = true;                               // over tcp: shares memory with processes of this host
  tuning::AttachUse attach = tuning::AttachUse::if_quick;  // cross-memory attach between ranks of a host
  gpu::DirectMode gpudirect = gpu::DirectMode::automatic;  // how the network reaches GPU memory
  std::vector<std::string> transports;                     // names in order of preference; empty: the library chooses
  PacketSecurity security = PacketSecurity::off;           // the least protection of connections
  UdpRank udp;                                             // over udp: parameters of the packets
  DpdkRank dpdk;                                           // over dpdk: the device
  std::uint32_t lanes = 0;                                 // wanted lanes, 1 to kLanesMax; 0: as many as save time
  std::chrono::milliseconds timeout{300'000};              // time-out of operations, 1 ms to ten years
  std::chrono::milliseconds hang_after{500};               // limit of an aggregator's silence, 50 ms to 1 min; 0: none
  std::uint64_t link_rate = 0;                             // rate in bits per second; 0: the interface's rate
  std::string rail;                                        // rail of this rank's only device; empty: lanes use all
  std::uint32_t io_threads = 0;                            // threads over tcp, 1 to kIoThreadsMax; 0: by rate and cores
  std::chrono::milliseconds begin_within{500};             // time to wait for trees at the start, up to a minute
  std::string interface_name;                              // name of the interface; empty: the library chooses
  std::vector<std::string> rdma_devices;                   // over verbs: devices by lane; empty: the library chooses
  std::uint32_t rdma_queue_pairs = 1;                      // over verbs: queue pairs of each connection, 1 to 8
  transport::RdmaPath rdma_path;                           // over verbs: parameters of the path
  bool rdma_on_demand = false;                             // over verbs: memory is registered on demand
  std::chrono::microseconds rdma_busy_poll{};              // over verbs: time for which a thread spins, up to 1 s
  std::string host_id;                                     // this host's place; default: the host's name
  LogLevel log = LogLevel::info;
  service::LogFormat log_format = service::LogFormat::text;
  std::string token_file;           // file with the job's token; empty: requests carry no token
  std::string status_dir = "auto";  // folder of the status port; auto: the user's; off: no port
  std::string flight_record;        // folder for the records of failed communicators; empty: none is written
  std::string statistics;           // folder for the statistics of communicators that end; empty: none
  std::string job = "default";      // name of the job, at most kNameBytesMax
  std::string priority{};           // class of the group's trees: low, normal, high; empty: normal
  /// Only from tributary_config: returns the time until the next call, and gets the time of the wait so far.
  using WhileWaiting = std::function<std::chrono::nanoseconds(std::chrono::nanoseconds waited)>;
  WhileWaiting while_waiting{};
  std::function<bool()> still_wanted{};  // only from tributary_config: asked while the ranks meet; empty: not asked
};

/// The description of one setting.
struct SettingHelp {
  std::string_view key;       // name in the configuration file
  std::string_view variable;  // name in the environment
  std::string_view default_text;
  std::string_view allowed;
  std::string_view help;
};
[[nodiscard]] std::span<const SettingHelp> setting_help();

/// A function that returns the value of a variable, or nullptr; std::getenv, except in tests.
using Environment = std::function<const char*(const char*)>;

/// Returns the settings from all sources. `config` may be nullptr. Errc::bad_config names the file and line, variable
/// or member, the value and the allowed values; bad_argument and unsupported concern the struct itself. An empty
/// variable counts as not set.
[[nodiscard]] Result<ClientSettings> load_settings(const tributary_config* config, const Environment& environment);
/// Returns the settings from all sources, with the process's own environment.
[[nodiscard]] Result<ClientSettings> load_settings(const tributary_config* config);

/// Sets one value. The message of an error says only why: service-kit/mistake.h has the whole sentence. `key` is one
/// of the keys of setting_help().
[[nodiscard]] Status set(ClientSettings& settings, std::string_view key, std::string_view value);

}  // namespace tributary::client

#pragma once
// Settings of RDMA packets on their way through the fabric: the values for which administrators set up queues,
// priorities and partitions. Ranks and aggregators use the same table of settings.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tributary::transport {

/// A value that is not set comes from the connection manager's path, that is, from the interface whose address is used,
/// and its routes. iWARP has neither partitions nor service levels, and repeats packets in its own way: it uses
/// only the traffic class.
struct RdmaPath {
  std::uint8_t traffic_class = 0;              // DSCP (upper six bits) and ECN of RoCE packets; 0: the system's value
  std::optional<std::uint8_t> service_level;   // for InfiniBand, 0 to 15; on RoCE the priority if DSCP is ignored
  std::optional<std::uint16_t> partition_key;  // its lower 15 bits must be in the port's table
  std::uint32_t mtu = 0;                       // bytes of payload: 256, 512, ... 4096; else the path's MTU
  std::optional<std::uint8_t> ack_timeout;     // 4.096 us x 2^n before a packet is sent again; at most 31; 0: never
  std::uint8_t retry_count = 6;                // repeats of a packet before the peer counts as gone; at most 7, which
                                               // some devices take for "for ever" (Linux's rdma_rxe)
  std::uint8_t rnr_retry_count = 6;            // repeats when the peer has no receive posted; 7: without end
  std::optional<std::uint8_t> rnr_timer;       // pause before a repeat, in InfiniBand's code, 0 to 31; 0 is 655.36 ms
  friend bool operator==(const RdmaPath&, const RdmaPath&) = default;
};

struct RdmaPathSetting {
  std::string_view name;      // name in a configuration file: rdma_...
  std::string_view variable;  // name in the environment: TRIBUTARY_RDMA_...
  std::string_view default_text;
  std::string_view allowed;
  std::string_view help;
  bool (*set)(RdmaPath& path, std::string_view value);  // false: the value is not allowed
  std::string (*text)(const RdmaPath& path);            // the value in the form that set() takes
};
[[nodiscard]] std::span<const RdmaPathSetting> rdma_path_settings() noexcept;

}  // namespace tributary::transport

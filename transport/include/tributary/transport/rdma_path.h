#pragma once
// The way that RDMA packets take through the fabric: the values by which administrators set up queues, priorities and
// partitions. One table of the settings, for ranks and aggregators alike.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tributary::transport {

/// A value that is not set comes from the connection manager's path, that is, from the interface whose address is used,
/// and its routes. iWARP has neither partitions nor service levels, and its own retransmission: only the traffic class
/// counts for it.
struct RdmaPath {
  std::uint8_t traffic_class = 0;              // DSCP (upper six bits) and ECN of RoCE packets; 0: the system's
  std::optional<std::uint8_t> service_level;   // InfiniBand's, 0 to 15; on RoCE the priority where no DSCP is trusted
  std::optional<std::uint16_t> partition_key;  // must be in the port's table, by its lower 15 bits
  std::uint32_t mtu = 0;                       // payload of a packet: 256, 512, ... 4096; 0, or more: the path's
  std::optional<std::uint8_t> ack_timeout;     // 4.096 us x 2^n before a packet is sent again; at most 31; 0: never
  std::uint8_t retry_count = 6;                // packets sent again before the peer counts as gone; at most 7, which
                                               // some devices take for "for ever" (Linux's rdma_rxe)
  std::uint8_t rnr_retry_count = 6;            // for devices that lose a posted receive; 7: for ever
  std::optional<std::uint8_t> rnr_timer;       // the pause before that, in InfiniBand's code, 0 to 31; 0 is 655.36 ms
  friend bool operator==(const RdmaPath&, const RdmaPath&) = default;
};

struct RdmaPathSetting {
  std::string_view name;      // rdma_...; in the environment TRIBUTARY_RDMA_...
  std::string_view variable;  // TRIBUTARY_RDMA_...
  std::string_view default_text;
  std::string_view allowed;
  std::string_view help;
  bool (*set)(RdmaPath& path, std::string_view value);  // false: the value is not allowed
  std::string (*text)(const RdmaPath& path);            // the value in the form that set() takes
};
[[nodiscard]] std::span<const RdmaPathSetting> rdma_path_settings() noexcept;

}  // namespace tributary::transport

#pragma once
// DPDK's driver of memif, shared memory between two processes, as a client that lends its packet buffers
// (`zero-copy=yes`): what lies in them is not copied here, but read and written by the server. It maps as many bytes of
// our memory as are in use when the two meet, from its beginning: such a device is opened before others are closed.
#include <string_view>

namespace tributary::transport::dpdk {

/// All of DPDK's memory must be one file then, for the server to map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.find(",zero-copy=yes") != std::string_view::npos;
}

/// Seen with DPDK 22.11: of more than four packets such a client takes four without looking at how much room is left
/// between them. Packets of two buffers may fill the ring meanwhile, and a packet of one behind them overruns it. Among
/// packets of equally many buffers that cannot be.
[[nodiscard]] constexpr bool wants_equal_packets(std::string_view device) noexcept {
  return lends_buffers(device);
}

}  // namespace tributary::transport::dpdk

#pragma once
// DPDK's driver of memif, shared memory between two processes, as a client that lends its packet buffers
// (`zero-copy=yes`): what lies in them is not copied here, but read and written by the server.
#include <cstdint>
#include <string_view>

namespace tributary::transport::dpdk {

/// All of DPDK's memory must be one file then, for the server to map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.find(",zero-copy=yes") != std::string_view::npos;
}

/// Seen with DPDK 22.11: of more than four packets the driver takes four without looking at how much room is left
/// between them. Packets of two buffers fill the ring in that time, and one of a single buffer behind them overruns it.
inline constexpr std::uint16_t kLentAtOnce = 4;

}  // namespace tributary::transport::dpdk

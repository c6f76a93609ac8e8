#pragma once
// DPDK's driver for memif, which is shared memory between two processes. Here it is a client that lends its packet
// buffers (`zero-copy=yes`): the server reads and writes them, and nothing is copied here. When the two meet, the
// server maps our memory from its beginning, as many bytes as are in use then. So such a device must be opened before
// others are closed.
#include <cstdint>
#include <string_view>

namespace tributary::transport::dpdk {

/// True for such a device: all of DPDK's memory must then be one file, which the server can map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.contains(",zero-copy=yes");
}

/// In DPDK 22.11 such a client takes packets by fours and looks at the ring's room only before each four. If a packet
/// has several buffers, the ring may fill up in between, and the client then overwrites packets under way. So it gets
/// at most this many at once, unless all have one buffer.
inline constexpr std::uint16_t kLentAtOnce = 4;

}  // namespace tributary::transport::dpdk

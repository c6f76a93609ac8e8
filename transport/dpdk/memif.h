#pragma once
// DPDK's driver for memif, which is shared memory between two processes. The functions here are about a client that
// lends its packet buffers (`zero-copy=yes`): the server reads and writes the buffers, and the client copies no data.
// When client and server connect, the server maps the client's memory from its beginning, as many bytes as are in use
// at that time. So such a device must be opened before others are closed.
#include <cstdint>
#include <string_view>

namespace tributary::transport::dpdk {

/// True for a device that lends its buffers: all of DPDK's memory must then be one file, which the server can map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.contains(",zero-copy=yes");
}

/// The most packets with several buffers each that such a client may get in one call. In DPDK 22.11 the client takes
/// packets in groups of four, and checks the ring's room only before each group. The ring may become full within a
/// group, and the client then overwrites packets that are under way.
inline constexpr std::uint16_t kLentAtOnce = 4;

}  // namespace tributary::transport::dpdk

#pragma once
// DPDK's driver of memif, shared memory between two processes, as a client that lends its packet buffers
// (`zero-copy=yes`): the server reads and writes them, and nothing is copied here. The server maps as many bytes of our
// memory, from its beginning, as are in use when the two meet: such a device must be opened before others are closed.
#include <cstdint>
#include <string_view>

namespace tributary::transport::dpdk {

/// All of DPDK's memory must be one file then, for the server to map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.find(",zero-copy=yes") != std::string_view::npos;
}

/// Seen with DPDK 22.11: while more than four packets are left, such a client takes four without looking at the room
/// between them. If one has several buffers the ring may be full by then, and packets under way are written over. So it
/// gets at most this many at once, unless all have one buffer.
inline constexpr std::uint16_t kLentAtOnce = 4;

}  // namespace tributary::transport::dpdk

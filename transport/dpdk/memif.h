#pragma once
// DPDK's driver of memif, shared memory between two processes, as a client that lends its packet buffers
// (`zero-copy=yes`): what lies in them is not copied here, but read and written by the server. It maps as many bytes of
// our memory as are in use when the two meet, from its beginning: such a device is opened before others are closed.
#include <cstdint>
#include <string_view>

namespace tributary::transport::dpdk {

/// All of DPDK's memory must be one file then, for the server to map.
[[nodiscard]] constexpr bool lends_buffers(std::string_view device) noexcept {
  return device.starts_with("net_memif") && device.find(",zero-copy=yes") != std::string_view::npos;
}

/// Seen with DPDK 22.11: while more than four packets are left such a client takes four without looking at how much
/// room there is between them. Where one has several buffers the ring may be full by then, and what is under way is
/// written over. So it gets no more than so many at once, but for packets of one buffer each.
inline constexpr std::uint16_t kLentAtOnce = 4;

}  // namespace tributary::transport::dpdk

#pragma once
// The handle that listen() writes and NCCL carries to the connecting process: the address, and a secret that strangers
// do not know.
#include <array>
#include <cstring>
#include <optional>

#include "client/control/unique_id.h"
#include "client/plugins/nccl/abi/base.h"
#include "client/plugins/nccl/socket_counts.h"
#include "client/plugins/nccl/wire.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::nccl {

using client::Secret;

struct NetHandle {
  std::uint64_t magic = kMagic;
  Secret secret{};
  std::array<char, 64> host{};
  std::uint32_t port = 0;
  Wire wire = Wire::tcp;
  SocketCounts counts;      // number of sockets at either end, which the listening end decides
  void* pending = nullptr;  // only at the connecting end: the connection, from the first call until it is open

  static constexpr std::uint64_t kMagic = 0x332d74656e627274;  // "trbnet-3"

  static std::optional<NetHandle> read(const void* from) {
    NetHandle handle;
    std::memcpy(&handle, from, sizeof handle);
    if (handle.magic != kMagic || handle.host.back() != '\0' || !is_possible(handle.counts)) return std::nullopt;
    return handle;
  }
  void write(void* to) const {
    std::memset(to, 0, abi::kHandleBytes);
    std::memcpy(to, this, sizeof *this);
  }
  [[nodiscard]] Endpoint endpoint() const { return {host.data(), static_cast<std::uint16_t>(port)}; }
};
static_assert(sizeof(NetHandle) <= abi::kHandleBytes);

}  // namespace tributary::nccl

#pragma once
// Room for encrypted payloads. The port reads them there until it is flushed.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

class SealedRoom {
 public:
  static constexpr std::size_t kBytes = 1U << 20;  // enough for some bursts of the longest datagrams

  /// Returns room for `bytes`, which is at least 1; empty if there is not enough room. Allocates on the first call.
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes) {
    TRIBUTARY_ASSERT(bytes > 0 && bytes <= kBytes, "{} bytes must be sealed, in a room of {}", bytes, kBytes);
    if (bytes_.empty()) bytes_.resize(kBytes);
    if (used_ + bytes > kBytes) return {};
    const auto room = std::span(bytes_).subspan(used_, bytes);
    used_ = std::min(used_ + (bytes + kLineBytes - 1) / kLineBytes * kLineBytes, kBytes);
    TRIBUTARY_ASSERT(used_ >= bytes && used_ <= kBytes, "{} bytes of {} are in use", used_, kBytes);
    return room;
  }
  /// Frees all room. Called after the port was flushed.
  void clear() noexcept { used_ = 0; }

 private:
  static constexpr std::size_t kLineBytes = 64;
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

}  // namespace tributary::transport::packet

#include "transport/packet/endings.h"

#include "transport/ethernet/checksum.h"

namespace tributary::transport::packet {

void Endings::find(Known& known, std::span<const std::byte> head, std::span<const std::byte> payload) const noexcept {
  known.data = payload.data();
  known.bytes = payload.size();
  known.turn = turn_;
  known.framed = !head.empty();
  if (known.framed) std::memcpy(known.head.data(), head.data(), kFrameHeaderBytes);
  known.ending = {.suffix = Crc32cSuffix::of(head, payload), .head_sum = ethernet::partial_sum(head)};
}

}  // namespace tributary::transport::packet

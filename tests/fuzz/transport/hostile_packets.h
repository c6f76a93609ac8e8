#pragma once
// A peer that speaks the packet protocol, cookies and all, but whose datagrams are changed, lost, repeated and held
// back on their way out, their checksums and seals made right again: as a client of the victim and as one of its
// servers. The victim must neither crash nor hang, and an honest client's frames must come back right to the end.
#include <cstdint>
#include <span>

#include "tributary/protocol/descriptor.h"

namespace tributary::fuzz {

struct PacketWorldSettings {
  bool short_ways = true;
  PacketSecurity victim = PacketSecurity::off;  // and the honest client
  PacketSecurity hostile = PacketSecurity::off;
  bool same_secret = true;  // the hostile side has the honest ones' secret
};

/// What the hostile side does is the input's. A sum over all datagrams, in their order.
[[nodiscard]] std::uint32_t play_hostile_packets(std::span<const std::uint8_t> input,
                                                 const PacketWorldSettings& settings);

}  // namespace tributary::fuzz

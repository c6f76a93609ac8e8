#pragma once
// A peer that speaks the packet protocol, with right cookies, but changes, loses, repeats and delays its datagrams on
// their way out, and then corrects their checksums and seals. It acts as a client of the victim and as a server of the
// victim's connections. The victim must neither crash nor hang, and an honest client's frames must come back right
// to the end.
#include <cstdint>
#include <span>

#include "tributary/protocol/descriptor.h"

namespace tributary::fuzz {

struct PacketWorldSettings {
  bool short_ways = true;
  PacketSecurity victim = PacketSecurity::off;  // security of the victim and of the honest client
  PacketSecurity hostile = PacketSecurity::off;
  bool same_secret = true;  // the hostile side knows the honest side's secret
};

/// Lets the input drive the hostile side. Returns a sum over all datagrams in their order.
[[nodiscard]] std::uint32_t play_hostile_packets(std::span<const std::uint8_t> input,
                                                 const PacketWorldSettings& settings);

}  // namespace tributary::fuzz

// A hostile peer of a packet transport whose packets are sealed. The peer may know the secret or not; it seals the
// packets that it changes again. The first byte chooses the security of each side.
#include <algorithm>
#include <array>

#include "tests/fuzz/transport/hostile_packets.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  struct Levels {
    PacketSecurity victim, hostile;
  };
  static constexpr std::array<Levels, 4> kLevels{{{PacketSecurity::authenticate, PacketSecurity::authenticate},
                                                  {PacketSecurity::encrypt, PacketSecurity::encrypt},
                                                  {PacketSecurity::authenticate, PacketSecurity::encrypt},
                                                  {PacketSecurity::off, PacketSecurity::authenticate}}};
  const Levels levels = kLevels[data[0] % kLevels.size()];
  static_cast<void>(fuzz::play_hostile_packets({data + 1, std::min<std::size_t>(size - 1, 2048)},
                                               {.short_ways = (data[0] & 4U) == 0,
                                                .victim = levels.victim,
                                                .hostile = levels.hostile,
                                                .same_secret = (data[0] & 8U) == 0}));
  return 0;
}

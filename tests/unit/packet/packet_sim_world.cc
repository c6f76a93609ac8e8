#include "tests/unit/packet/packet_world.h"
#include "tests/unit/packet/sealed_keys.h"
#include "transport/packet/receive_stream.h"

namespace tributary::transport::test {

using packet::test::LinkSettings;

std::vector<NamedWorld> worlds() {
  const auto world = [](const LinkSettings& link, std::uint64_t seed, packet::PacketSettings settings = {}) {
    settings.frames_queued_max = kFramesQueuedMax;
    settings.seed = seed;
    return [=] { return std::make_unique<PacketWorld>(seed, link, settings); };
  };
  return {
      {"clean", world({}, 1)},
      {"jumbo_frames", world({.datagram_bytes = 8972}, 2)},
      {"lost_1_in_1000", world({.lost = 1}, 3)},
      {"lost_1_in_100", world({.lost = 10}, 4)},
      {"lost_1_in_10", world({.lost = 100}, 5)},
      {"repeated_1_in_100", world({.repeated = 10}, 6)},
      {"overtaken_1_in_20", world({.overtaken = 50}, 7)},
      {"damaged_1_in_50", world({.damaged = 20}, 8)},
      {"everything_at_once", world({.lost = 20, .repeated = 10, .overtaken = 50, .damaged = 10}, 9)},
      {"small_windows", world({.lost = 10}, 10, {.window_bytes = 40000})},
      {"little_memory", world({.lost = 10}, 11, {.kept_bytes_max = 4 * packet::kChunkBytes})},
      {"authenticated", world({}, 13, {.keys = sealed_keys(PacketSecurity::authenticate)})},
      {"encrypted", world({}, 14, {.keys = sealed_keys(PacketSecurity::encrypt)})},
      {"encrypted_everything_at_once", world({.lost = 20, .repeated = 10, .overtaken = 50, .damaged = 10}, 15,
                                             {.keys = sealed_keys(PacketSecurity::encrypt)})},
      {"slow_link", world({.bytes_per_second = 2.5e7, .queue_bytes = 60000, .mark_bytes = 20000}, 12)},
  };
}

}  // namespace tributary::transport::test

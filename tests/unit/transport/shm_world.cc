#include "tests/unit/transport/shm_world.h"

namespace tributary::transport::test {

std::vector<NamedWorld> worlds() {
  const auto world = [](const ShmSettings& settings) {
    return [settings] { return std::make_unique<ShmWorld>(settings); };
  };
  return {{"plain", world({.frames_queued_max = kFramesQueuedMax})},
          {"small_rings", world({.ring_bytes = 32768, .frames_queued_max = kFramesQueuedMax})},
          {"small_turns", world({.frames_queued_max = kFramesQueuedMax, .poll_bytes_max = 700})}};
}

}  // namespace tributary::transport::test

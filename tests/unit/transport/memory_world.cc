#include "tests/unit/transport/memory_world.h"

namespace tributary::transport::test {

std::vector<NamedWorld> worlds() {
  std::vector<NamedWorld> all;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    all.push_back({"seed" + std::to_string(seed), [seed] { return std::make_unique<MemoryWorld>(seed); }});
  }
  return all;
}

}  // namespace tributary::transport::test

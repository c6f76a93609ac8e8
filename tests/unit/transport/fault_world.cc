#include "tests/unit/transport/memory_world.h"
#include "tests/unit/transport/tcp_world.h"

namespace tributary::transport::test {

/// Delays are the only fault under which a transport can keep the whole contract.
std::vector<NamedWorld> worlds() {
  const auto delays = [](std::uint64_t seed) {
    return FaultPlan{seed, {{.fault = Fault::delay, .per_thousand = 100, .delay_max = std::chrono::microseconds(50)}}};
  };
  std::vector<NamedWorld> all;
  all.push_back({"nothing_over_memory", [] { return std::make_unique<FaultyMemoryWorld>(3, FaultPlan{}); }});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    all.push_back({"delays_over_memory_seed" + std::to_string(seed),
                   [=] { return std::make_unique<FaultyMemoryWorld>(seed, delays(seed)); }});
  }
  const TcpSettings settings{.frames_queued_max = kFramesQueuedMax};
  all.push_back({"nothing_over_tcp", [=] { return std::make_unique<FaultyTcpWorld>(settings, FaultPlan{}); }});
  all.push_back({"delays_over_tcp", [=] { return std::make_unique<FaultyTcpWorld>(settings, delays(5)); }});
  return all;
}

}  // namespace tributary::transport::test

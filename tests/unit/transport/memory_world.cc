#include "tributary/transport/sim_network.h"
#include "world.h"

namespace tributary::transport::test {
namespace {

class MemoryWorld : public World {
 public:
  explicit MemoryWorld(std::uint64_t seed) : network_({.seed = seed, .frames_queued_max = kFramesQueuedMax}) {}
  Transport& server() override { return network_.transport("server"); }
  Transport& client() override { return network_.transport("client"); }
  Endpoint server_address(std::uint16_t port) override { return {"server", port}; }
  Endpoint nowhere() override { return {"server", 9}; }
  bool run_until(const std::function<bool()>& done) override {
    return network_.run_until(done, network_.now() + std::chrono::seconds(60));
  }
  void settle() override { network_.run_for(std::chrono::milliseconds(10)); }

 private:
  SimNetwork network_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  std::vector<NamedWorld> all;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    all.push_back({"seed" + std::to_string(seed), [seed] { return std::make_unique<MemoryWorld>(seed); }});
  }
  return all;
}

}  // namespace tributary::transport::test

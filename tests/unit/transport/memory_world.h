#pragma once
// A world on a SimNetwork, and another with faults on both sides.
#include "tests/unit/transport/world.h"
#include "tributary/transport/fault.h"
#include "tributary/transport/sim_network.h"

namespace tributary::transport::test {

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

 protected:
  SimNetwork network_;
};

class FaultyMemoryWorld final : public MemoryWorld {
 public:
  FaultyMemoryWorld(std::uint64_t seed, FaultPlan plan)
      : MemoryWorld(seed), server_(network_.transport("server"), plan), client_(network_.transport("client"), plan) {
    drive("server", server_);
    drive("client", client_);
  }
  FaultyTransport& server() override { return server_; }
  FaultyTransport& client() override { return client_; }

 private:
  void drive(const char* host, FaultyTransport& transport) {
    network_.on_due(host, [&transport] { transport.poll({}); });
    transport.on_wake([this, host](TimePoint at) { network_.wake_at(host, at); });
  }
  FaultyTransport server_;
  FaultyTransport client_;
};

}  // namespace tributary::transport::test

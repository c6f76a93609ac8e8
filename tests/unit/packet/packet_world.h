#pragma once
// A world of the conformance suite on simulated ports.
#include "tests/unit/packet/sim_packets.h"
#include "tests/unit/transport/world.h"

namespace tributary::transport::test {

class PacketWorld final : public World {
 public:
  PacketWorld(std::uint64_t seed, const packet::test::LinkSettings& link, const packet::PacketSettings& settings)
      : network_(seed, link),
        server_(network_.opener(1), settings, network_.time()),
        client_(network_.opener(2), settings, network_.time()) {}
  packet::PacketTransport& server() override { return server_; }
  packet::PacketTransport& client() override { return client_; }
  Endpoint server_address(std::uint16_t port) override { return {packet::test::SimPackets::host(1), port}; }
  Endpoint nowhere() override { return {packet::test::SimPackets::host(3), 9}; }
  bool run_until(const std::function<bool()>& done) override {
    return network_.run_until({&server_, &client_}, done, std::chrono::seconds(60));
  }
  void settle() override {
    network_.run_until({&server_, &client_}, [] { return false; }, std::chrono::milliseconds(20));
  }
  packet::test::SimPackets& network() noexcept { return network_; }

 private:
  packet::test::SimPackets network_;
  packet::PacketTransport server_;
  packet::PacketTransport client_;
};

}  // namespace tributary::transport::test

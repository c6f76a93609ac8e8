#pragma once
// A server and a client on a simulated network of packets, for tests of the protocol's promises.
#include "tests/unit/packet/ends.h"
#include "transport/packet/wire.h"

namespace tributary::transport::packet::test {

class Packets : public ::testing::Test {
 protected:
  void start(const LinkSettings& link = {}) {
    network_.link() = link;
    start_server(0);
    client_ = std::make_unique<PacketTransport>(network_.opener(2), settings(2), network_.time());
  }
  void start_server(std::uint16_t port) {
    server_ = std::make_unique<PacketTransport>(network_.opener(1), settings(1), network_.time());
    auto listener = server_->listen({SimPackets::host(1), port}, sinks_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
  }
  static PacketSettings settings(std::uint64_t seed) {
    PacketSettings settings;
    settings.seed = seed;
    return settings;
  }
  void connect(Source& source) {
    source.channel = client_->connect(listener_->local(), source, std::chrono::seconds(10));
    const std::size_t before = sinks_.all.size();
    ASSERT_TRUE(run([&] { return sinks_.all.size() > before && sinks_.all.back()->frames > 0; }));
  }
  bool run(const std::function<bool()>& done, Duration limit = std::chrono::seconds(20)) {
    std::vector<PacketTransport*> all;
    for (PacketTransport* one : {server_.get(), client_.get(), other_.get()}) {
      if (one != nullptr) all.push_back(one);
    }
    return network_.run_until(all, done, limit);
  }
  /// Sends a datagram from host 9 to the server.
  void forge(PacketPort& from, const PacketHeader& header, std::span<const std::byte> payload = {}) {
    std::vector<std::byte> bytes(kPacketHeaderBytes);
    encode(header, std::span(bytes).first<kPacketHeaderBytes>(), payload, {});
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    ASSERT_TRUE(from.send(SimPackets::address(1, listener_->local().port), bytes, {}));
    from.flush();
  }

  SimPackets network_{77};
  Sinks sinks_;
  std::unique_ptr<PacketTransport> server_, client_, other_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tributary::transport::packet::test

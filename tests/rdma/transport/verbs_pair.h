#pragma once
// A client and a server with separate settings, and one connection between them.
#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {

class VerbsPair : public testing::Test {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
  }
  /// Waits until the connection is open at both ends, or has failed. `first` is a frame that the client queues at once,
  /// if given.
  void connect(VerbsSettings there, VerbsSettings here, const std::optional<FrameHeader>& first = {}) {
    there.bind_address = rdma_hosts().front();
    here.bind_address = rdma_hosts().back();
    server = VerbsTransport::create(there).value();
    client = VerbsTransport::create(here).value();
    auto listening = server->listen({there.bind_address, 0}, acceptor_);
    ASSERT_TRUE(listening) << listening.error().message;
    listener_ = std::move(*listening);
    client_peer.channel = client->connect(listener_->local(), client_peer, std::chrono::seconds(30));
    if (first) client_peer.channel->send_copy(*first, {});
    ASSERT_TRUE(
        run_until([&] { return client_peer.closed || (client_peer.opened && server_peer().channel != nullptr); }));
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server->poll({}) + client->poll({}) == 0) server->poll(std::chrono::microseconds(100));
    }
    return true;
  }
  [[nodiscard]] Peer& server_peer() noexcept { return acceptor_.peer; }

 private:
  class PeerAcceptor final : public Acceptor {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      peer.channel = std::move(channel);
      return &peer;
    }
    Peer peer;
  };
  PeerAcceptor acceptor_;

 protected:
  Peer client_peer;
  std::unique_ptr<VerbsTransport> server, client;

 private:
  std::unique_ptr<Listener> listener_;
};

}  // namespace tributary::transport::test

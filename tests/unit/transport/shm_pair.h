#pragma once
// Two transports over shared memory, one of which listens. Tests use one connection between them, or a stranger's
// connection to the listening transport.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/unit/transport/peer.h"
#include "tests/unit/transport/shm_stranger.h"
#include "tributary/transport/shm.h"

namespace tributary::transport::test {

class ShmPair : public ::testing::Test {
 protected:
  explicit ShmPair(const ShmSettings& server = {}) : server_(server) {}
  void SetUp() override { listener_ = server_.listen({"127.0.0.1", 0}, acceptor_).value(); }

  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(20)) {
    for (const TimePoint end = Clock::now() + limit; !done();) {
      if (Clock::now() > end) return false;
      if (server_.poll({}) + client_.poll({}) == 0) server_.poll(std::chrono::microseconds(100));
    }
    return true;
  }
  void connect() {
    peer_.channel = client_.connect(listener_->local(), peer_, std::chrono::seconds(5));
    ASSERT_TRUE(run_until([&] { return peer_.opened && acceptor_.peers.size() == 1; }));
  }
  /// Runs until the connection is open.
  void let_in(ShmStranger& stranger) {
    const std::size_t before = acceptor_.peers.size();
    ASSERT_TRUE(stranger.socket.is_open());
    ASSERT_TRUE(run_until([&] { return stranger.take_offer(); }));
    stranger.say_mapped();
    ASSERT_TRUE(run_until([&] { return stranger.hear_go(); }));
    ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == before + 1; }));
  }
  std::string name() { return to_string(listener_->local()); }
  Peer& server() { return *acceptor_.peers.front(); }
  Peer& newest() { return *acceptor_.peers.back(); }

  ShmTransport server_;
  ShmTransport client_;
  PeerAcceptor acceptor_;
  Peer peer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tributary::transport::test

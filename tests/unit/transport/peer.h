#pragma once
// A handler that records its callbacks and acts as the test says, and the payloads for it.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/transport/world.h"

namespace tributary::transport::test {

/// Makes bytes that differ from frame to frame and from place to place.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (auto& b : bytes) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    b = static_cast<std::byte>(x >> 56);
  }
  return bytes;
}

inline FrameHeader header_of(std::uint64_t sequence, FrameType type = FrameType::contribution) {
  FrameHeader header;
  header.type = type;
  header.sequence = sequence;
  header.group = 77;
  header.epoch = 3;
  return header;
}

struct Received {
  FrameHeader header;
  std::vector<std::byte> payload;
};

/// One side of one connection.
class Peer : public ChannelHandler {
 public:
  void on_open(Channel&) override {
    opened = true;
    if (when_open) when_open();
  }
  Placement on_header(Channel& from, const FrameHeader& header) override {
    ++headers;
    if (place) return place(from, header);
    return accept(header);
  }
  void on_frame(Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
    frames.push_back({header, {payload.begin(), payload.end()}});
    if (when_frame) when_frame(from, frames.back());
  }
  void on_sent(Channel&, std::uint64_t cookie) override {
    sent.push_back(cookie);
    if (when_sent) when_sent(cookie);
  }
  void on_closed(Channel& of, const Error& error) override {
    EXPECT_FALSE(closed.has_value()) << "on_closed is the last callback";
    EXPECT_TRUE(of.closed());
    closed = error;
    if (when_closed) when_closed();
  }

  /// Puts each frame into a buffer of its own, unless the test says otherwise.
  Placement accept(const FrameHeader& header) {
    buffer.assign(header.payload_bytes, std::byte{0xEE});
    return Accept{buffer};
  }

  bool opened = false;
  std::size_t headers = 0;
  std::vector<std::byte> buffer;
  std::deque<Received> frames;
  std::vector<std::uint64_t> sent;
  std::optional<Error> closed;

  std::function<void()> when_open;
  std::function<Placement(Channel&, const FrameHeader&)> place;
  std::function<void(Channel&, const Received&)> when_frame;
  std::function<void(std::uint64_t)> when_sent;
  std::function<void()> when_closed;

  std::unique_ptr<Channel> channel;  // destroyed first: while the channel is open, a device may write to `buffer`
};

/// Gives every accepted connection to a Peer of its own.
class PeerAcceptor : public Acceptor {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    ++accepted;
    if (refuse) return nullptr;
    peers.push_back(std::make_unique<Peer>());
    if (prepare) prepare(*peers.back());
    peers.back()->channel = std::move(channel);
    if (when_accepted) when_accepted(*peers.back());
    return peers.back().get();
  }
  std::vector<std::unique_ptr<Peer>> peers;
  std::size_t accepted = 0;
  bool refuse = false;
  std::function<void(Peer&)> prepare;
  std::function<void(Peer&)> when_accepted;
};

/// A world with a listening server and, after connect(), one connection.
class TransportConformance : public ::testing::TestWithParam<NamedWorld> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    auto listener = world_->server().listen(world_->server_address(0), acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
  }
  void connect() {
    client_.channel = world_->client().connect(listener_->local(), client_, std::chrono::seconds(10));
    ASSERT_TRUE(run_until([&] { return (client_.opened && !acceptor_.peers.empty()) || client_.closed; }));
    ASSERT_FALSE(client_.closed) << client_.closed->message;
  }
  Peer& server() { return *acceptor_.peers.front(); }
  bool run_until(const std::function<bool()>& done) { return world_->run_until(done); }
  void settle() { world_->settle(); }

  std::unique_ptr<World> world_;
  PeerAcceptor acceptor_;
  Peer client_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tributary::transport::test

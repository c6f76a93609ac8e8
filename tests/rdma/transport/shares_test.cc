// Parties whose connections come to one thread over RDMA are read in proportion to their weights, whatever the number
// of their connections.
#include <deque>
#include <map>

#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"
#include "tributary/transport/turn_share.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kPayload = 8000;

/// Sends frames without end.
class Endless final : public ChannelHandler {
 public:
  void on_open(Channel&) override { feed(); }
  Placement on_header(Channel&, const FrameHeader&) override { return Reject{{Errc::corrupt, "a frame back"}}; }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_sent(Channel&, std::uint64_t) override { feed(); }
  void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
  void feed() {
    while (channel && channel->send(header_of(next_), payload_, next_)) ++next_;
  }
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_ = pattern(kPayload, 1);
  std::uint64_t next_ = 0;
};

/// Counts the bytes of frames.
class Counting final : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte> payload) override { *count += payload.size(); }
  void on_closed(Channel&, const Error&) override {}
  std::unique_ptr<Channel> channel;
  std::size_t* count = nullptr;

 private:
  std::vector<std::byte> place_;
};

class VerbsShares : public testing::Test, public Acceptor {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
    server_ = VerbsTransport::create({.bind_address = rdma_hosts().front()}).value();
    listener_ = server_->listen({rdma_hosts().front(), 0}, *this).value();
  }
  void TearDown() override {
    senders_.clear();
    accepted_.clear();
  }
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    Counting& one = accepted_.emplace_back();
    one.count = &bytes_[accepted_.size() <= crowd_ ? 0 : 1];
    if (const auto& share = shares_[accepted_.size() <= crowd_ ? 0 : 1]) channel->set_turn_share(share);
    one.channel = std::move(channel);
    return &one;
  }
  /// Connects one after the other: first the crowd, then the single connection.
  void connect(std::size_t crowd) {
    crowd_ = crowd;
    for (std::size_t i = 0; i <= crowd; ++i) {
      if (i == 0 || i == crowd)
        clients_.push_back(VerbsTransport::create({.bind_address = rdma_hosts().back()}).value());
      Endless& sender = senders_.emplace_back();
      sender.channel = clients_.back()->connect(listener_->local(), sender, std::chrono::seconds(30));
      run([&] { return accepted_.size() == i + 1; });
    }
  }
  void run(const std::function<bool()>& done) {
    for (const TimePoint limit = Clock::now() + std::chrono::minutes(1); !done() && Clock::now() < limit;) {
      server_->poll({});
      for (int i = 0; i < 4; ++i) {
        for (const auto& client : clients_) client->poll({});
      }
    }
    EXPECT_TRUE(done());
  }
  /// Returns the crowd's bytes for each byte of the single connection.
  double ratio() {
    run([&] { return bytes_[0] > 4 << 20 && bytes_[1] > 256 << 10; });
    const auto before = bytes_;
    run([&] { return bytes_[0] + bytes_[1] - before[0] - before[1] > 24 << 20; });
    return static_cast<double>(bytes_[0] - before[0]) / static_cast<double>(bytes_[1] - before[1]);
  }

  std::array<std::shared_ptr<TurnShare>, 2> shares_;
  std::array<std::size_t, 2> bytes_{};
  std::unique_ptr<VerbsTransport> server_;
  std::vector<std::unique_ptr<VerbsTransport>> clients_;
  std::deque<Endless> senders_;
  std::deque<Counting> accepted_;

 private:
  std::unique_ptr<Listener> listener_;
  std::size_t crowd_ = 0;
};

TEST_F(VerbsShares, WithoutSharesManyConnectionsTakeMost) {
  connect(8);
  EXPECT_GT(ratio(), 4);
}

TEST_F(VerbsShares, ManyConnectionsAreReadNoMoreThanTheirShare) {
  const auto parties = std::make_shared<std::size_t>(0);
  for (auto& share : shares_) share = std::make_shared<TurnShare>(1, parties);
  connect(8);
  const double read = ratio();
  EXPECT_GT(read, 0.5);
  EXPECT_LT(read, 2);
}

}  // namespace
}  // namespace tributary::transport::test

#pragma once
// Parties whose connections come to one thread, which has no time for all that they send. The thread's handler sleeps
// for each frame. So the parties share the thread, and neither the network nor the processors, on a busy machine, too.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/transport/peer.h"
#include "tributary/transport/turn_share.h"

namespace tributary::transport::test {

class BusyShares : public Acceptor {
 public:
  struct Settings {
    std::size_t payload_bytes = 4000;
    Duration time_of_frame = std::chrono::microseconds(100);
    std::uint32_t window = 64;  // frames of a connection that the server has not answered
    bool room = false;          // the server makes room for the window's payloads
  };
  BusyShares(std::unique_ptr<Transport> server, const std::string& host, const Settings& settings)
      : settings_(settings), server_(std::move(server)), listener_(server_->listen({host, 0}, *this).value()) {}

  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    Slow& one = accepted_.emplace_back();
    Party& party = *parties_.back();
    one.bytes = &party.bytes;
    one.time = settings_.time_of_frame;
    if (party.share) channel->set_turn_share(party.share);
    if (settings_.room) channel->make_room(settings_.window, static_cast<std::uint32_t>(settings_.payload_bytes));
    one.channel = std::move(channel);
    return &one;
  }
  /// Adds a party whose connections flood. `weight` 0: it has no share.
  void flood(std::unique_ptr<Transport> client, std::uint32_t weight, std::size_t connections) {
    Party& party = *parties_.emplace_back(std::make_unique<Party>());
    if (weight > 0) party.share = std::make_shared<TurnShare>(weight, all_);
    party.client = std::move(client);
    for (std::size_t i = 0; i < connections; ++i) {
      const std::size_t before = accepted_.size();
      Endless& sender = senders_.emplace_back(settings_.payload_bytes, settings_.window);
      sender.channel = party.client->connect(listener_->local(), sender, std::chrono::seconds(30));
      sender.feed();
      run_until([&] { return accepted_.size() > before; });
    }
  }
  /// The first party's bytes for each byte of the second party, while both together move `bytes`.
  [[nodiscard]] double ratio(std::uint64_t bytes) {
    const Party &first = *parties_.at(0), &second = *parties_.at(1);
    run_until([&, until = first.bytes + second.bytes + bytes / 4] { return first.bytes + second.bytes > until; });
    const std::array before{first.bytes, second.bytes};
    run_until([&] { return first.bytes + second.bytes - before[0] - before[1] > bytes; });
    const double ratio = static_cast<double>(first.bytes - before[0]) / static_cast<double>(second.bytes - before[1]);
    std::printf("%.2f bytes of the first party for each byte of the second", ratio);
    if (first.share && second.share) std::printf("; they waited in %lu and %lu rounds", waits(0), waits(1));
    std::printf("\n");
    return ratio;
  }
  /// The number of rounds in which the party had to wait.
  [[nodiscard]] std::uint64_t waits(std::size_t party) const { return parties_.at(party)->share->waits(); }
  ~BusyShares() override {
    senders_.clear();  // channels end before their transports
    accepted_.clear();
  }
  BusyShares(const BusyShares&) = delete;
  BusyShares& operator=(const BusyShares&) = delete;

 private:
  /// Sends frames without end, as many at a time as its window has.
  class Endless final : public ChannelHandler {
   public:
    Endless(std::size_t payload_bytes, std::uint32_t window) : payload_(pattern(payload_bytes, 1)), window_(window) {}
    void on_open(Channel&) override { feed(); }
    Placement on_header(Channel&, const FrameHeader&) override { return Accept{}; }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {
      ++answered_;
      feed();
    }
    void on_sent(Channel&, std::uint64_t) override { feed(); }
    void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
    void feed() {
      while (channel && next_ < answered_ + window_ && channel->send(header_of(next_), payload_, next_)) ++next_;
    }
    std::unique_ptr<Channel> channel;

   private:
    const std::vector<std::byte> payload_;
    const std::uint32_t window_;
    std::uint64_t next_ = 0, answered_ = 0;
  };

  /// Takes and answers frames, and needs some time for each.
  class Slow final : public ChannelHandler {
   public:
    Placement on_header(Channel&, const FrameHeader& header) override {
      place_.resize(header.payload_bytes);
      return Accept{place_};
    }
    void on_frame(Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
      from.send_copy(header_of(header.sequence), {});
      *bytes += payload.size();
      if (time > Duration::zero()) std::this_thread::sleep_for(time);
    }
    void on_closed(Channel&, const Error&) override {}
    std::unique_ptr<Channel> channel;
    std::uint64_t* bytes = nullptr;
    Duration time{};

   private:
    std::vector<std::byte> place_;
  };

  struct Party {
    std::unique_ptr<Transport> client;
    std::shared_ptr<TurnShare> share;
    std::uint64_t bytes = 0;
  };
  void run_until(const std::function<bool()>& done) {
    for (const TimePoint limit = Clock::now() + std::chrono::minutes(1); !done() && Clock::now() < limit;) {
      server_->poll({});
      for (int i = 0; i < 4; ++i) {
        for (const auto& party : parties_) party->client->poll({});
      }
    }
    ASSERT_TRUE(done()) << "a minute was not enough";
  }

  const Settings settings_;
  const std::shared_ptr<TurnParties> all_ = std::make_shared<TurnParties>();
  std::unique_ptr<Transport> server_;
  std::vector<std::unique_ptr<Party>> parties_;
  std::deque<Endless> senders_;
  std::deque<Slow> accepted_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tributary::transport::test

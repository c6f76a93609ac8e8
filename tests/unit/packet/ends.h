#pragma once
// Ends of channels that send numbered frames, without limit or for some time, and check every byte that arrives.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/unit/packet/sim_packets.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport::packet::test {

using transport::test::header_of;
using transport::test::pattern;

/// Sends as many frames of one payload as the queue takes.
class Source : public ChannelHandler {
 public:
  explicit Source(std::size_t payload_bytes, std::uint64_t frames_max = UINT64_MAX)
      : payload_(payload_bytes, std::byte{7}), frames_max_(frames_max) {}
  void on_open(Channel&) override {
    opened = true;
    feed();
  }
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{}; }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_sent(Channel&, std::uint64_t) override {
    ++sent;
    feed();
  }
  void on_closed(Channel&, const Error& error) override { closed = error; }
  void feed() {
    while (channel && next_ < frames_max_ && channel->send(header_of(next_), payload_, next_)) ++next_;
  }
  bool opened = false;
  std::uint64_t sent = 0;
  std::optional<Error> closed;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_;
  std::uint64_t next_ = 0;
  std::uint64_t frames_max_;
};

/// Counts the frames that arrive on each channel.
class Sinks : public Acceptor {
 public:
  class Sink : public ChannelHandler {
   public:
    Placement on_header(Channel&, const FrameHeader& header) override {
      place_.resize(header.payload_bytes);
      return Accept{place_};
    }
    void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
      EXPECT_EQ(header.sequence, frames++);
      bytes += payload.size();
    }
    void on_closed(Channel&, const Error& error) override { closed = error; }
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
    std::optional<Error> closed;
    std::unique_ptr<Channel> channel;

   private:
    std::vector<std::byte> place_;
  };
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    all.push_back(std::make_unique<Sink>());
    all.back()->channel = std::move(channel);
    return all.back().get();
  }
  std::vector<std::unique_ptr<Sink>> all;
};

/// Returns Jain's index (Jain, Chiu, Hawe, 1984): 1 if all shares are equal, 1/n if one sender has everything.
[[nodiscard]] inline double fairness(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace tributary::transport::packet::test

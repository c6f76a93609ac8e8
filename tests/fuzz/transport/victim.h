#pragma once
// The two honest parties while a stranger writes any bytes to a transport: a victim that lets everybody in and decides
// by each frame's numbers how to handle it, and an honest client whose frames must come back unchanged.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::fuzz {

inline constexpr std::uint64_t kHonestGroup = 1, kHostileGroup = 2;

inline FrameHeader header_of(std::uint64_t group, std::uint64_t sequence) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.group = group;
  header.sequence = sequence;
  return header;
}

/// The victim's handler. It sends frames of the honest group back unchanged, and handles all other frames by their
/// numbers.
class Victim : public transport::ChannelHandler {
 public:
  transport::Placement on_header(transport::Channel& from, const FrameHeader& header) override {
    if (closed_) std::abort();
    if (header.group != kHonestGroup) {
      if (header.sequence % 8 == 3 && !std::exchange(stopped_, true)) return transport::NotYet{};
      if (header.sequence % 8 == 5) return transport::Reject{{Errc::corrupt, "not wanted"}};
      if (header.sequence % 8 == 7) {
        from.close();
        return transport::NotYet{};
      }
    }
    place_ = std::make_unique<std::byte[]>(header.payload_bytes);
    return transport::Accept{{place_.get(), header.payload_bytes}};
  }
  bool takes_in_place(transport::Channel&, const FrameHeader& header) override {
    taken_ = header.group != kHonestGroup && header.sequence % 2 == 0;
    return taken_;
  }
  void on_frame(transport::Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
    if (closed_ || payload.size() != header.payload_bytes) std::abort();
    stopped_ = false;
    if (header.group == kHonestGroup) return from.send_copy(header, payload);
    unsigned sum = 0;
    for (const std::byte byte : payload) sum += std::to_integer<unsigned>(byte);  // read every byte
    read_ = sum;
    from.send_copy(header_of(header.group, header.sequence), payload.first(std::min<std::size_t>(payload.size(), 512)));
    if (!std::exchange(taken_, false)) return;
    if (header.sequence % 8 == 2) return from.give_back(payload);
    kept_.emplace_back(payload);
  }
  void on_closed(transport::Channel&, const Error&) override {
    if (std::exchange(closed_, true)) std::abort();
  }
  void go_on() {
    if (channel && !channel->closed() && stopped_) channel->resume();
  }
  void give_back(std::size_t number) {
    if (!channel || kept_.empty()) return;
    const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(number % kept_.size());
    channel->give_back(*at);
    kept_.erase(at);
  }
  std::unique_ptr<transport::Channel> channel;

 private:
  std::unique_ptr<std::byte[]> place_;
  std::vector<std::span<const std::byte>> kept_;
  volatile unsigned read_ = 0;
  bool stopped_ = false;
  bool taken_ = false;
  bool closed_ = false;
};

class Accepting : public transport::Acceptor {
 public:
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    ends.push_back(std::make_unique<Victim>());
    ends.back()->channel = std::move(channel);
    return ends.back().get();
  }
  std::vector<std::unique_ptr<Victim>> ends;
};

class Asking : public transport::ChannelHandler {
 public:
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    if (header.sequence != answers || header.payload_bytes != payload_.size()) std::abort();
    return transport::Accept{place_};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte> payload) override {
    if (!std::ranges::equal(payload, payload_)) std::abort();
    ++answers;
  }
  void on_closed(transport::Channel&, const Error&) override { std::abort(); }
  void ask() {
    payload_.fill(static_cast<std::byte>(answers + 1));
    place_.fill(std::byte{0});
    channel->send_copy(header_of(kHonestGroup, answers), payload_);
  }
  std::uint64_t answers = 0;
  std::unique_ptr<transport::Channel> channel;

 private:
  std::array<std::byte, 700> payload_{}, place_{};
};

}  // namespace tributary::fuzz

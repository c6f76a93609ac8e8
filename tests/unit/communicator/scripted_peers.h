#pragma once
// A rank's mesh, and the other ends of its connections, which the test plays frame by frame. The rank is 0, so the
// other ranks connect.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/communicator/message_queue.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {

struct ScriptedFrame {
  FrameHeader header;
  std::vector<std::byte> payload;
};

/// Records the frames that the rank sends, and delivers frames to the rank when the test says so.
class ScriptedChannel final : public transport::Channel {
 public:
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override {
    send_copy(header, payload);
    unsaid_.push_back(cookie);
    return true;
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    sent.push_back({header, {payload.begin(), payload.end()}});
    sent.back().header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  }
  void resume() override { waits_ = false; }
  void close() override { closed_ = true; }
  void close_after_flush(transport::Duration) override { closed_ = true; }
  [[nodiscard]] bool closed() const noexcept override { return closed_; }
  [[nodiscard]] std::string peer() const override { return "a test"; }

  void comes(ScriptedFrame frame) {
    coming_.push_back(std::move(frame));
    run();
  }
  /// Delivers all frames that the rank reads now, and reports all frames as sent.
  void run() {
    while (!closed_ && !unsaid_.empty()) {
      const std::uint64_t cookie = unsaid_.front();
      unsaid_.pop_front();
      handler->on_sent(*this, cookie);
    }
    while (!closed_ && !waits_ && !coming_.empty()) {
      auto& [header, payload] = coming_.front();
      header.payload_bytes = static_cast<std::uint32_t>(payload.size());
      const transport::Placement placement = handler->on_header(*this, header);
      if (std::holds_alternative<transport::NotYet>(placement)) {
        waits_ = true;
        return;
      }
      if (const auto* reject = std::get_if<transport::Reject>(&placement)) {
        closed_ = true;
        return handler->on_closed(*this, reject->error);
      }
      const auto place = std::get<transport::Accept>(placement).payload;
      ASSERT_EQ(place.size(), payload.size());
      if (!payload.empty()) std::memcpy(place.data(), payload.data(), payload.size());
      const FrameHeader read = header;
      coming_.pop_front();
      handler->on_frame(*this, read, place);
    }
  }
  [[nodiscard]] bool unread() const { return !coming_.empty(); }

  transport::ChannelHandler* handler = nullptr;
  std::deque<ScriptedFrame> sent;  // frames that this rank has sent and the test has not looked at yet

 private:
  std::deque<ScriptedFrame> coming_;
  std::deque<std::uint64_t> unsaid_;
  bool waits_ = false, closed_ = false;
};

class ScriptedPeers : public testing::Test {
 protected:
  ScriptedPeers() { queue_.use(mesh_); }

  /// Returns the other end of a connection. The first call makes the connection.
  ScriptedChannel& channel(PeerClass peer_class, std::uint32_t peer) {
    auto& known = channels_[{peer_class, peer}];
    if (known != nullptr) return *known;
    auto made = std::make_unique<ScriptedChannel>();
    known = made.get();
    std::unique_ptr<transport::Channel> channel = std::move(made);
    known->handler = mesh_.accept(peer_class, peer, {}, channel).handler;
    return *known;
  }
  /// Runs until no frame moves any more.
  void settle() {
    for (int round = 0; round < 10; ++round) {
      for (auto& [key, channel] : channels_) channel->run();
    }
  }

  static std::byte value(std::uint32_t from, std::uint64_t number) {
    return static_cast<std::byte>(from * 50 + number);
  }
  static FrameHeader header_of(FrameType type, std::uint64_t number, std::uint64_t sequence, std::uint64_t count) {
    FrameHeader header;
    header.type = type;
    header.operation = number;
    header.sequence = sequence;
    header.set_signature(
        {.collective = Collective::all_to_all, .dtype = DType::uint8, .op = {}, .root = 0, .count = count});
    return header;
  }
  /// Sends a message of `count` bytes in its frames.
  void comes(PeerClass peer_class, std::uint32_t from, std::uint64_t number, std::uint64_t count = 4) {
    for (std::uint64_t frame = 0, left = count; frame == 0 || left > 0; ++frame) {
      const std::uint64_t length = std::min<std::uint64_t>(left, kPieceBytes);
      left -= length;
      channel(peer_class, from)
          .comes({header_of(FrameType::message, number, frame, count), std::vector(length, value(from, number))});
    }
    settle();
  }
  void offers(std::uint32_t from, std::uint64_t number, std::uint64_t tag, std::uint64_t count = 4) {
    channel(PeerClass::tagged, from).comes({header_of(FrameType::offer, number, tag, count), {}});
  }
  void wants(std::uint32_t from, std::uint64_t number) {
    channel(PeerClass::tagged, from).comes({header_of(FrameType::want, number, 0, 0), {}});
    settle();
  }
  /// Returns the numbers of the offers for which this rank has sent a `want` to the other rank since the last call.
  std::vector<std::uint64_t> wanted(std::uint32_t of) {
    std::vector<std::uint64_t> numbers;
    for (const ScriptedFrame& frame : std::exchange(channel(PeerClass::tagged, of).sent, {})) {
      EXPECT_EQ(frame.header.type, FrameType::want);
      numbers.push_back(frame.header.operation);
    }
    return numbers;
  }

  /// Makes a receive of `count` bytes, which records its end as "name: from r" and checks the bytes.
  void receive(const std::string& name, std::optional<std::uint32_t> source, std::uint32_t tag = 0,
               std::uint64_t count = 4, const std::function<void()>& then = nullptr) {
    struct Call {
      std::vector<std::byte> memory;
      std::string from = "?";
    };
    const auto call = std::make_shared<Call>(Call{std::vector<std::byte>(count, std::byte{0xEE})});
    queue_.receive(source, {.recv = call->memory.data(),
                            .count = count,
                            .tag = tag,
                            .on_done =
                                [this, name, call, then](const Status& status) {
                                  const bool same = std::ranges::count(call->memory, call->memory.front()) ==
                                                    static_cast<std::ptrdiff_t>(call->memory.size());
                                  if (!same) ended_.push_back(name + ": bytes of several messages");
                                  const int byte = std::to_integer<int>(call->memory.front());
                                  ended_.push_back(name + ": " +
                                                   (status ? "from " + call->from + ", " + std::to_string(byte)
                                                           : status.error().message));
                                  if (then) then();
                                },
                            .on_source = [call](std::uint32_t from) { call->from = std::to_string(from); }});
    settle();
  }
  void send(const std::string& name, std::uint32_t peer, std::uint32_t tag = 0, std::byte filled = std::byte{9},
            std::uint64_t count = 4) {
    auto& memory = memory_.emplace_back(count, filled);
    queue_.send(peer, {.sends = true,
                       .send = memory.data(),
                       .count = count,
                       .tag = tag,
                       .on_done = [this, name](const Status& status) {
                         ended_.push_back(name + ": " + (status ? "sent" : status.error().message));
                       }});
    settle();
  }
  std::vector<std::string> ended() { return std::exchange(ended_, {}); }

  std::vector<std::string> ended_, disagreed_, lost_;
  int arrived_ = 0;
  std::deque<std::vector<std::byte>> memory_;
  transport::SimNetwork network_;
  Directory directory_{0, 8};
  PeerMesh mesh_{{.first = network_.transport("here")}, directory_, 0, Secret{}, std::chrono::seconds(1)};
  MessageQueue queue_{
      0,
      {.arrived = [this] { ++arrived_; },
       .ended = [] {},
       .disagree = [this](const std::string& text) { disagreed_.push_back(text); },
       .lost = [this](std::uint32_t peer,
                      const std::string& reason) { lost_.push_back(std::to_string(peer) + ": " + reason); }}};

 private:
  std::map<std::pair<PeerClass, std::uint32_t>, ScriptedChannel*> channels_;
};

}  // namespace tributary::client

#pragma once
// Two ends of one channel over loopback, with a transport and a thread on each side.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::transport::bench {

using namespace std::chrono_literals;

inline FrameHeader header_of(std::uint64_t sequence) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.sequence = sequence;
  return header;
}

inline std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> filled(bytes);
  for (std::size_t i = 0; i < bytes; ++i) filled[i] = static_cast<std::byte>(i * 31 + i / 256);
  return filled;
}

/// Receives all frames into one place, and sends each back if the settings say so.
class Receiver : public ChannelHandler, public Acceptor {
 public:
  Receiver(std::size_t payload_bytes, bool echoes)
      : expected_(pattern(payload_bytes)), place_(payload_bytes), echoes_(echoes) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channel_ = std::move(channel);
    return this;
  }
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{place_}; }
  void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override {
    if (received_++ == 0 && !std::ranges::equal(payload, expected_)) throw std::runtime_error("the bytes are wrong");
    if (echoes_ && !channel.send(header, payload, header.sequence)) throw std::runtime_error("the queue is full");
  }
  void on_closed(Channel&, const Error&) override {}

 private:
  std::vector<std::byte> expected_;
  std::vector<std::byte> place_;
  bool echoes_;
  std::uint64_t received_ = 0;
  std::unique_ptr<Channel> channel_;
};

class Sender : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { ++answers; }
  void on_sent(Channel&, std::uint64_t) override { ++sent; }
  void on_closed(Channel&, const Error& error) override { throw std::runtime_error(error.message); }
  std::uint64_t sent = 0;
  std::uint64_t answers = 0;

 private:
  std::vector<std::byte> place_;
};

/// The other side, on a separate thread.
template <class Transport, class Settings>
class Server {
 public:
  Server(std::size_t payload_bytes, bool echoes, const Settings& settings)
      : receiver_(payload_bytes, echoes), transport_(settings) {
    listener_ = transport_.listen({"127.0.0.1", 0}, receiver_).value();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) transport_.poll(1ms);
    });
  }
  [[nodiscard]] Endpoint address() const { return listener_->local(); }

 private:
  Receiver receiver_;
  Transport transport_;
  std::unique_ptr<Listener> listener_;
  std::jthread thread_;
};

constexpr std::uint64_t kWindow = 32;  // frames in the queue

/// Sends one stream of frames, as many at once as the window allows, and reports the bytes of payload a second. It
/// calls `then` with the transport and the channel when all frames are sent.
template <class T, class Settings, class Then>
void run_stream(benchmark::State& state, std::size_t bytes, const Settings& settings, Then then) {
  Server<T, Settings> server(bytes, false, settings);
  T transport(settings);
  Sender sender;
  const auto channel = transport.connect(server.address(), sender, 5s);
  const auto payload = pattern(bytes);
  std::uint64_t queued = 0;
  for (auto _ : state) {
    while (queued - sender.sent >= kWindow) transport.poll(1ms);
    if (!channel->send(header_of(queued), payload, queued)) throw std::runtime_error("the queue is full");
    ++queued;
  }
  while (sender.sent < queued) transport.poll(1ms);
  state.SetBytesProcessed(static_cast<std::int64_t>(queued * bytes));
  then(transport, *channel);
}

/// Sends one frame at a time, and waits until it has come back.
template <class T, class Settings>
void run_round_trips(benchmark::State& state, std::size_t bytes, const Settings& settings) {
  Server<T, Settings> server(bytes, true, settings);
  T transport(settings);
  Sender sender;
  const auto channel = transport.connect(server.address(), sender, 5s);
  const auto payload = pattern(bytes);
  std::uint64_t round = 0;
  for (auto _ : state) {
    if (!channel->send(header_of(round), payload, round)) throw std::runtime_error("the queue is full");
    for (++round; sender.answers < round;) transport.poll(1ms);
  }
}

}  // namespace tributary::transport::bench

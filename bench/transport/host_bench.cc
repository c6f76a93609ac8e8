// Within one host, over TCP on loopback (shm:0) and through shared memory (shm:1), one transport and thread on each
// side: how many bytes a second in segments, how long a small frame takes there and back.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tributary/transport/near.h"

namespace tributary::transport {
namespace {

using namespace std::chrono_literals;

FrameHeader header_of(std::uint64_t sequence) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.sequence = sequence;
  return header;
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> filled(bytes);
  for (std::size_t i = 0; i < bytes; ++i) filled[i] = static_cast<std::byte>(i * 31 + i / 256);
  return filled;
}

/// Takes frames into one place, and sends each back if it is told to.
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

/// The other side, on its own thread.
class Server {
 public:
  Server(std::size_t payload_bytes, bool echoes, const NearSettings& settings)
      : receiver_(payload_bytes, echoes), transport_(settings) {
    listener_ = transport_.listen({"127.0.0.1", 0}, receiver_).value();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) transport_.poll(1ms);
    });
  }
  [[nodiscard]] Endpoint address() const { return listener_->local(); }

 private:
  Receiver receiver_;
  NearTransport transport_;
  std::unique_ptr<Listener> listener_;
  std::jthread thread_;
};

/// Bytes of payload a second, with a window of frames in the queue.
void throughput(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  constexpr std::uint64_t kWindow = 32;
  const NearSettings settings{.shared_memory = state.range(1) != 0};
  Server server(bytes, false, settings);
  NearTransport transport(settings);
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
  const TcpStatistics statistics = transport.tcp_statistics();
  if (statistics.write_calls == 0) return;
  state.counters["frames_per_write"] =
      static_cast<double>(statistics.frames_sent) / static_cast<double>(statistics.write_calls);
}
BENCHMARK(throughput)->ArgNames({"bytes", "shm"})->ArgsProduct({{64, 4096, 65536, 1 << 20}, {0, 1}})->UseRealTime();

/// There and back; spinning or sleeping in poll().
void round_trip(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const NearSettings settings{.tcp = {.busy_poll = std::chrono::microseconds(state.range(1))},
                              .shared_memory = state.range(2) != 0};
  Server server(bytes, true, settings);
  NearTransport transport(settings);
  Sender sender;
  const auto channel = transport.connect(server.address(), sender, 5s);
  const auto payload = pattern(bytes);
  std::uint64_t round = 0;
  for (auto _ : state) {
    if (!channel->send(header_of(round), payload, round)) throw std::runtime_error("the queue is full");
    for (++round; sender.answers < round;) transport.poll(1ms);
  }
}
BENCHMARK(round_trip)->ArgNames({"bytes", "busy_poll_us", "shm"})->ArgsProduct({{64}, {0, 100}, {0, 1}})->UseRealTime();

}  // namespace
}  // namespace tributary::transport

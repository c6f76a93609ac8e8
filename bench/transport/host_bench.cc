// Within one host, over TCP on loopback (shm:0) and through shared memory (shm:1), one transport and thread on each
// side: how many bytes a second in segments, how long a small frame takes there and back.
#include <benchmark/benchmark.h>

#include "loopback.h"
#include "tributary/transport/near.h"

namespace tributary::transport::bench {
namespace {

using NearServer = Server<NearTransport, NearSettings>;

/// Bytes of payload a second, with a window of frames in the queue.
void throughput(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  constexpr std::uint64_t kWindow = 32;
  const NearSettings settings{.shared_memory = state.range(1) != 0};
  NearServer server(bytes, false, settings);
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
  NearServer server(bytes, true, settings);
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
}  // namespace tributary::transport::bench

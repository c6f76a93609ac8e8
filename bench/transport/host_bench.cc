// Measures the bytes a second in segments, and the time of a small frame there and back, within one host: over TCP on
// loopback (shm:0) and through shared memory (shm:1), with one transport and thread on each side.
#include <benchmark/benchmark.h>

#include "bench/transport/loopback.h"
#include "tributary/transport/near.h"

namespace tributary::transport::bench {
namespace {

void throughput(benchmark::State& state) {
  const NearSettings settings{.shared_memory = state.range(1) != 0};
  run_stream<NearTransport>(
      state, static_cast<std::size_t>(state.range(0)), settings, [&](const NearTransport& transport, const Channel&) {
        const TcpStatistics statistics = transport.tcp_statistics();
        if (statistics.write_calls == 0) return;
        state.counters["frames_per_write"] =
            static_cast<double>(statistics.frames_sent) / static_cast<double>(statistics.write_calls);
      });
}
BENCHMARK(throughput)->ArgNames({"bytes", "shm"})->ArgsProduct({{64, 4096, 65536, 1 << 20}, {0, 1}})->UseRealTime();

/// The two sides spin or sleep in poll().
void round_trip(benchmark::State& state) {
  run_round_trips<NearTransport>(state, static_cast<std::size_t>(state.range(0)),
                                 NearSettings{.tcp = {.busy_poll = std::chrono::microseconds(state.range(1))},
                                              .shared_memory = state.range(2) != 0});
}
BENCHMARK(round_trip)->ArgNames({"bytes", "busy_poll_us", "shm"})->ArgsProduct({{64}, {0, 100}, {0, 1}})->UseRealTime();

}  // namespace
}  // namespace tributary::transport::bench

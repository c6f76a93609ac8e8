// Measures channels over UDP, with packets of Ethernet's size and of the greatest size, and with packets that are lost
// on purpose.
#include <benchmark/benchmark.h>

#include "bench/transport/loopback.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::bench {
namespace {

UdpSettings settings_of(std::int64_t datagram_bytes, std::int64_t lost_per_thousand) {
  UdpSettings settings;
  settings.datagram_bytes_max = static_cast<std::size_t>(datagram_bytes);
  if (lost_per_thousand > 0) settings.faults = "lost=" + std::to_string(lost_per_thousand) + ",seed=1";
  return settings;
}

void udp_throughput(benchmark::State& state) {
  run_stream<UdpTransport>(state, static_cast<std::size_t>(state.range(0)), settings_of(state.range(1), state.range(2)),
                           [&](const UdpTransport& transport, const Channel&) {
                             const UdpStatistics statistics = transport.statistics();
                             state.counters["sent_again_percent"] = 100.0 *
                                                                    static_cast<double>(statistics.packets_sent_again) /
                                                                    static_cast<double>(statistics.packets_sent);
                           });
}
BENCHMARK(udp_throughput)
    ->ArgNames({"bytes", "datagram", "lost_per_thousand"})
    ->ArgsProduct({{4096, 65536, 1 << 20}, {1472, 8972, 16384, 32768, 65000}, {0}})
    ->ArgsProduct({{65536}, {1472, 16384}, {1, 10, 20, 50, 100}})
    ->UseRealTime();

/// Measures with each kind of seal; off means the protocol's checksum.
void udp_sealed(benchmark::State& state) {
  UdpSettings settings = settings_of(state.range(1), 0);
  const auto security = static_cast<PacketSecurity>(state.range(2));
  settings.keys = std::make_shared<LinkKeys>(security);
  settings.keys->set_peers(LinkSecret{});
  run_stream<UdpTransport>(state, static_cast<std::size_t>(state.range(0)), settings,
                           [&](const UdpTransport&, const Channel& channel) {
                             if ((security != PacketSecurity::off) != channel.sealed().has_value())
                               throw std::runtime_error("the connection does not have this seal");
                           });
  state.SetLabel(std::string(to_string(security)));
}
BENCHMARK(udp_sealed)
    ->ArgNames({"bytes", "datagram", "security"})
    ->ArgsProduct({{65536}, {1472, 8972, 16384}, {0, 1, 2}})
    ->UseRealTime();

/// The two sides spin or sleep in poll().
void udp_round_trip(benchmark::State& state) {
  UdpSettings settings;
  settings.busy_poll = std::chrono::microseconds(state.range(1));
  run_round_trips<UdpTransport>(state, static_cast<std::size_t>(state.range(0)), settings);
}
BENCHMARK(udp_round_trip)->ArgNames({"bytes", "busy_poll_us"})->Args({64, 0})->Args({64, 100})->UseRealTime();

}  // namespace
}  // namespace tributary::transport::bench

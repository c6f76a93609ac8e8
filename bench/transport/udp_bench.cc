// The same over UDP, in packets of Ethernet and in the longest ones, and with packets lost on purpose.
#include <benchmark/benchmark.h>

#include "loopback.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::bench {
namespace {

UdpSettings settings_of(std::int64_t datagram_bytes, std::int64_t lost_per_thousand) {
  UdpSettings settings;
  settings.datagram_bytes_max = static_cast<std::size_t>(datagram_bytes);
  if (lost_per_thousand > 0) settings.faults = "lost=" + std::to_string(lost_per_thousand) + ",seed=1";
  return settings;
}

/// Bytes of payload a second, with a window of frames in the queue.
void udp_throughput(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  constexpr std::uint64_t kWindow = 32;
  const UdpSettings settings = settings_of(state.range(1), state.range(2));
  Server<UdpTransport, UdpSettings> server(bytes, false, settings);
  UdpTransport transport(settings);
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
  const UdpStatistics statistics = transport.statistics();
  state.counters["sent_again_percent"] =
      100.0 * static_cast<double>(statistics.packets_sent_again) / static_cast<double>(statistics.packets_sent);
}
BENCHMARK(udp_throughput)
    ->ArgNames({"bytes", "datagram", "lost_per_thousand"})
    ->ArgsProduct({{4096, 65536, 1 << 20}, {1472, 8972, 16384, 32768, 65000}, {0}})
    ->ArgsProduct({{65536}, {1472, 16384}, {1, 10, 20, 50, 100}})
    ->UseRealTime();

/// The same with what packets are sealed with; off is the protocol's checksum.
void udp_sealed(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  constexpr std::uint64_t kWindow = 32;
  UdpSettings settings = settings_of(state.range(1), 0);
  const auto security = static_cast<PacketSecurity>(state.range(2));
  settings.keys = std::make_shared<LinkKeys>(security);
  settings.keys->set_peers(LinkSecret{});
  Server<UdpTransport, UdpSettings> server(bytes, false, settings);
  UdpTransport transport(settings);
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
  if ((security != PacketSecurity::off) != channel->sealed().has_value()) throw std::runtime_error("not sealed so");
  state.SetBytesProcessed(static_cast<std::int64_t>(queued * bytes));
  state.SetLabel(std::string(to_string(security)));
}
BENCHMARK(udp_sealed)
    ->ArgNames({"bytes", "datagram", "security"})
    ->ArgsProduct({{65536}, {1472, 8972, 16384}, {0, 1, 2}})
    ->UseRealTime();

/// There and back; spinning or sleeping in poll().
void udp_round_trip(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  UdpSettings settings;
  settings.busy_poll = std::chrono::microseconds(state.range(1));
  Server<UdpTransport, UdpSettings> server(bytes, true, settings);
  UdpTransport transport(settings);
  Sender sender;
  const auto channel = transport.connect(server.address(), sender, 5s);
  const auto payload = pattern(bytes);
  std::uint64_t round = 0;
  for (auto _ : state) {
    if (!channel->send(header_of(round), payload, round)) throw std::runtime_error("the queue is full");
    for (++round; sender.answers < round;) transport.poll(1ms);
  }
}
BENCHMARK(udp_round_trip)->ArgNames({"bytes", "busy_poll_us"})->Args({64, 0})->Args({64, 100})->UseRealTime();

}  // namespace
}  // namespace tributary::transport::bench

// Measures channels over TCP with each kind of seal.
#include <benchmark/benchmark.h>

#include "bench/transport/loopback.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport::bench {
namespace {

void tcp_sealed(benchmark::State& state) {
  const auto security = static_cast<PacketSecurity>(state.range(1));
  TcpSettings settings;
  if (security != PacketSecurity::off) {
    settings.keys = std::make_shared<LinkKeys>(security);
    settings.keys->set_peers(LinkSecret{});
  }
  run_stream<TcpTransport>(state, static_cast<std::size_t>(state.range(0)), settings,
                           [&](const TcpTransport&, const Channel& channel) {
                             if ((security != PacketSecurity::off) != channel.sealed().has_value())
                               throw std::runtime_error("the connection does not have this seal");
                           });
  state.SetLabel(std::string(to_string(security)));
}
BENCHMARK(tcp_sealed)->ArgNames({"bytes", "security"})->ArgsProduct({{4096, 65536, 1 << 20}, {0, 1, 2}})->UseRealTime();

}  // namespace
}  // namespace tributary::transport::bench

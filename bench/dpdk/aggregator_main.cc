// A root aggregator's data path over the packet protocol. As in a worker of the daemon, the engine's lane runs over a
// DpdkTransport. The first CHILDREN connections are the lane's children, in the order in which they come.
//   dpdk_aggregator_bench DEVICE ADDRESS/PREFIX PORT CORE CHILDREN WINDOW SEGMENT_BYTES
// At the end the program prints the cycles that a packet cost in turns that had work.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "bench/dpdk/root.h"
#include "tributary/transport/dpdk.h"

namespace {

using namespace tributary;
using namespace tributary::transport;

volatile std::sig_atomic_t over = 0;

int serve(char** a) {
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(a[i], nullptr, 10)); };
  auto device = DpdkDevice::open({.device = a[1], .addresses = {a[2]}});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  bench::Roots root(
      {.children = number(5), .window = number(6), .segment_bytes = number(7), .ranks = number(5), .root = true}, 1);
  std::uint64_t busy = 0;
  std::uint64_t turns = 0;
  DpdkStatistics told;
  {
    DpdkTransport transport(*device, {.core = static_cast<int>(number(4))});
    const auto listener = transport.listen({{}, static_cast<std::uint16_t>(number(3))}, root);
    if (!listener) return std::fprintf(stderr, "%s\n", listener.error().message.c_str()), 1;
    while (over == 0) {
      const std::uint64_t begin = __builtin_ia32_rdtsc();
      if (transport.poll(Duration{}) == 0) continue;
      busy += __builtin_ia32_rdtsc() - begin;
      ++turns;
    }
    told = transport.statistics();
  }
  const auto packets = static_cast<double>(std::max<std::uint64_t>(told.packets_received, 1));
  std::printf("packets received %llu, sent %llu, again %llu; %.1f a turn; %.0f cycles a packet received, busy turns\n",
              static_cast<unsigned long long>(told.packets_received),
              static_cast<unsigned long long>(told.packets_sent),
              static_cast<unsigned long long>(told.packets_sent_again),
              packets / static_cast<double>(std::max<std::uint64_t>(turns, 1)), static_cast<double>(busy) / packets);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 8) return 64;
  std::signal(SIGTERM, [](int) { over = 1; });
  std::signal(SIGINT, [](int) { over = 1; });
  return serve(arguments);
}

// An aggregator's data path on one or more cores, without a network. Each core has a queue of one device (net_ring),
// with its own DpdkTransport and lanes, like the daemon's workers. The children of these lanes, at the other end of the
// ring, run on the same core by turns. The ring copies no packet, so the figure is the aggregator's own cost: the
// cycles of its turns, divided by the packets received.
//   dpdk_scaling_bench CORES SECONDS CHILDREN WINDOW SEGMENT_BYTES LANES [crossed]
// LANES is the number of lanes on each core. With `crossed` every packet comes to the queue of another core, which
// hands it over, as with a device that spreads packets without a rule for their ports.
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <barrier>
#include <string>

#include "bench/dpdk/children.h"
#include "bench/dpdk/root.h"
#include "bench/dpdk/start.h"
#include "tributary/transport/dpdk.h"

namespace {

using namespace tributary;
using namespace tributary::transport;
using Clock = bench::Children::Clock;

struct Setting {
  std::uint16_t cores = 1;
  double seconds = 1;
  std::uint32_t children = 8, window = 32, segment_bytes = 1024, lanes = 1;
  bool crossed = false;
};

/// Two devices; each queue is wired to the same queue of the other device.
std::array<std::string, 2> wired_devices(std::uint16_t queues) {
  std::array<std::vector<rte_ring*>, 2> rings;
  for (std::size_t way = 0; way < 2; ++way) {
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
      const std::string name = "way" + std::to_string(way) + "_" + std::to_string(queue);
      rings[way].push_back(::rte_ring_create(name.c_str(), 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ));
    }
  }
  std::array<std::string, 2> names;
  for (std::size_t end = 0; end < 2; ++end) {
    const int id = ::rte_eth_from_rings(end == 0 ? "server" : "client", rings[1 - end].data(), queues,
                                        rings[end].data(), queues, 0);
    std::array<char, RTE_ETH_NAME_MAX_LEN> full{};
    if (id >= 0) ::rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(id), full.data());
    names[end] = full.data();
  }
  return names;
}

struct Core {
  std::uint64_t busy = 0, turns = 0, packets = 0, sent = 0, handed_over = 0, results = 0;
  double seconds = 0;
  bool failed = false;
};

void run_core(std::uint16_t number, const Setting& setting, const std::shared_ptr<DpdkDevice>& server,
              dpdk::Device& client, std::barrier<>& together, Core& told) {
  const auto port = static_cast<std::uint16_t>(7471 + number);
  const bench::ChildrenSetting its{
      .window = setting.window,
      .segment_bytes = setting.segment_bytes,
      .flow = {.from_mac = client.host().settings().mac,
               .from = client.settings().addresses.front().address,
               .to = ethernet::parse_ip("10.9.0.2").value(),
               .from_port = static_cast<std::uint16_t>(5000 + number),
               .to_port = port},
      .queue = number,
      .send_queue = setting.crossed ? static_cast<std::uint16_t>((number + 1) % setting.cores) : number,
      .lane_children = setting.children};
  bench::Children children(client, std::size_t{setting.lanes} * setting.children, its);
  // These are destroyed after the children, because they may hold the children's packets until then.
  bench::Roots roots({.children = setting.children,
                      .window = setting.window,
                      .segment_bytes = setting.segment_bytes,
                      .ranks = setting.children,
                      .root = true},
                     setting.lanes);
  DpdkTransport transport(server, {.queue = number, .core = number});
  const auto listener = transport.listen({{}, port}, roots);
  std::uint64_t busy = 0;
  std::uint64_t turns = 0;
  const auto serve = [&] {
    const std::uint64_t begin = __builtin_ia32_rdtsc();
    if (transport.poll(Duration{}) == 0) return;
    busy += __builtin_ia32_rdtsc() - begin;
    ++turns;
  };
  told.failed |= !listener || !children.connect(serve);
  const auto exchange = [&](double seconds) {
    const auto length = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (const auto end = Clock::now() + length; Clock::now() < end;) {
      children.tell_where_we_are();
      for (int i = 0; i < 20000; ++i) {
        children.turn();
        serve();
      }
    }
  };
  together.arrive_and_wait();
  if (!told.failed) exchange(0.3);
  const auto before = transport.statistics();
  const std::uint64_t results = children.results();
  together.arrive_and_wait();
  busy = turns = 0;
  const auto began = Clock::now();
  if (!told.failed) exchange(setting.seconds);
  const auto after = transport.statistics();
  told.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  told.results = children.results() - results;
  told.failed |= children.wrong();
  told.busy = busy;
  told.turns = turns;
  told.packets = after.packets_received - before.packets_received;
  told.sent = after.packets_sent - before.packets_sent;
  told.handed_over = after.frames_handed_over - before.frames_handed_over;
  together.arrive_and_wait();  // the other end of a ring is in use until this point
}

int run(const Setting& setting) {
  auto eal = dpdk::Eal::start({.memory_bytes = 256U << 20U});
  if (!eal) return std::fprintf(stderr, "%s\n", eal.error().message.c_str()), 1;
  const auto names = wired_devices(setting.cores);
  const auto server = DpdkDevice::open({.device = names[0], .addresses = {"10.9.0.2/24"}, .queues = setting.cores});
  const auto client = dpdk::Device::open(
      *eal,
      {.device = names[1], .addresses = {{ethernet::parse_ip("10.9.0.1").value(), 120}}, .queues = setting.cores});
  if (!server || !client) return std::fprintf(stderr, "the devices cannot be opened\n"), 1;
  std::barrier together(setting.cores);
  std::vector<Core> told(setting.cores);
  std::vector<std::thread> threads;
  for (std::uint16_t i = 0; i < setting.cores; ++i) {
    threads.emplace_back([&, i] { run_core(i, setting, *server, **client, together, told[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  double all = 0;
  double could = 0;
  const auto hz = static_cast<double>(::rte_get_tsc_hz());
  for (std::uint16_t i = 0; i < setting.cores; ++i) {
    const Core& core = told[i];
    if (core.failed) return std::fprintf(stderr, "core %u: no connection, or a wrong result\n", i), 1;
    const double cycles =
        static_cast<double>(core.busy) / static_cast<double>(std::max<std::uint64_t>(core.packets, 1));
    std::printf(
        "core %u: %.0f cycles a packet, %.1f packets a turn, %.2f sent for each; %.0f %% handed over\n", i, cycles,
        static_cast<double>(core.packets) / static_cast<double>(std::max<std::uint64_t>(core.turns, 1)),
        static_cast<double>(core.sent) / static_cast<double>(std::max<std::uint64_t>(core.packets, 1)),
        100 * static_cast<double>(core.handed_over) / static_cast<double>(std::max<std::uint64_t>(core.packets, 1)));
    all += static_cast<double>(core.results) / core.seconds / 1e6;
    could += hz / cycles / 1e6;
  }
  std::printf("cores %u: %.3f Mpackets/s with the load on the same cores; the aggregator alone could do %.3f\n",
              setting.cores, all, could);
  return 0;
}

}  // namespace

int main(int count, char** a) {
  if (count != 7 && count != 8) return 64;
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(a[i], nullptr, 10)); };
  return run({.cores = static_cast<std::uint16_t>(number(1)),
              .seconds = std::atof(a[2]),
              .children = number(3),
              .window = number(4),
              .segment_bytes = number(5),
              .lanes = number(6),
              .crossed = count == 8});
}

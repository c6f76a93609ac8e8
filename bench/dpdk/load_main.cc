// Sends one datagram again and again, as fast as the device takes it, and counts the datagrams that come back. The
// program does the same for every program at the other end.
//   dpdk_load_bench DEVICE CORE SECONDS BYTES OUR_IP THEIR_IP THEIR_PORT THEIR_MAC [WINDOW]
// WINDOW bounds the datagrams under way, as with children of an aggregator; without WINDOW only the device does.
// In the first second the two ends find each other. After the measurement it prints the rate of packets that came back,
// in millions a second, and stays for two more seconds, unless it is ended.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/dpdk/start.h"
#include "transport/dpdk/device.h"
#include "transport/dpdk/packet_pool.h"
#include "transport/ethernet/control_writer.h"

namespace {

using namespace tributary;
using namespace tributary::transport;
using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint16_t kBurst = 64;

std::vector<std::byte> make_frame(const ethernet::UdpFlow& flow, std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
    const float value = static_cast<float>(i) / 1024;
    std::memcpy(payload.data() + i, &value, sizeof value);
  }
  const ethernet::UdpTemplate headers(flow, {});
  std::vector<std::byte> frame(headers.bytes() + bytes);
  std::memcpy(frame.data() + headers.bytes(), payload.data(), bytes);
  headers.write(frame.data(), bytes, ethernet::partial_sum(payload));
  return frame;
}

struct Counts {
  std::uint64_t sent = 0, back = 0;
};

/// Announces this program's addresses, like any host: the peer needs them for its answers, and forgets them after some
/// time.
void tell_where_we_are(dpdk::Device& device, const ethernet::UdpFlow& flow) {
  const ethernet::Station us{flow.from_mac, flow.from};
  for (const auto operation : {ethernet::ArpOperation::request, ethernet::ArpOperation::reply}) {
    rte_mbuf* mbuf = ::rte_pktmbuf_alloc(device.send_pool(0).get());
    if (mbuf == nullptr) return;
    auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
    mbuf->data_len = static_cast<std::uint16_t>(
        ethernet::write_arp({at, 128}, 0, operation, us, {flow.to_mac, flow.to}, flow.to_mac));
    mbuf->pkt_len = mbuf->data_len;
    if (::rte_eth_tx_burst(device.id(), 0, &mbuf, 1) == 0) ::rte_pktmbuf_free(mbuf);
  }
}

/// A pool in which every buffer already holds the frame: drivers copy from the buffers, and do not write to them.
std::unique_ptr<dpdk::PacketPool> make_frames(const dpdk::Device& device, const std::vector<std::byte>& frame) {
  constexpr std::uint32_t kMbufs = 8192;
  auto pool = dpdk::PacketPool::make({.name = "frames", .mbufs = kMbufs, .data_room = dpdk::data_room(device.mtu())});
  if (!pool) return nullptr;
  std::vector<rte_mbuf*> each(kMbufs);
  if (::rte_pktmbuf_alloc_bulk((*pool)->get(), each.data(), kMbufs) != 0) return nullptr;
  for (rte_mbuf* const mbuf : each) std::memcpy(rte_pktmbuf_mtod(mbuf, void*), frame.data(), frame.size());
  ::rte_pktmbuf_free_bulk(each.data(), kMbufs);
  return std::move(*pool);
}

Counts exchange(dpdk::Device& device, const ethernet::UdpFlow& flow, rte_mempool* frames, std::size_t bytes,
                std::uint64_t window, Steady::duration time) {
  Counts counts;
  std::array<rte_mbuf*, kBurst> burst;
  Steady::time_point told{};
  for (const auto end = Steady::now() + time; Steady::now() < end;) {
    if (Steady::now() - told > 100ms) {
      told = Steady::now();
      tell_where_we_are(device, flow);
    }
    for (int turn = 0; turn < 64; ++turn) {
      const std::uint16_t got = ::rte_eth_rx_burst(device.id(), 0, burst.data(), kBurst);
      counts.back += got;
      ::rte_pktmbuf_free_bulk(burst.data(), got);
      if (window != 0 && counts.sent + kBurst > counts.back + window) continue;
      if (::rte_pktmbuf_alloc_bulk(frames, burst.data(), kBurst) != 0) continue;
      for (rte_mbuf* const mbuf : burst) {
        mbuf->data_len = static_cast<std::uint16_t>(bytes);
        mbuf->pkt_len = mbuf->data_len;
      }
      const std::uint16_t taken = ::rte_eth_tx_burst(device.id(), 0, burst.data(), kBurst);
      counts.sent += taken;
      ::rte_pktmbuf_free_bulk(burst.data() + taken, kBurst - taken);
    }
  }
  return counts;
}

int run(char** a, std::uint64_t window) {
  const auto device = bench::open_device(a[1], a[5], a[2]);
  if (!device) return 1;
  const ethernet::UdpFlow flow = bench::flow_to(*device, a[6], a[7], a[8]);
  const auto frame = make_frame(flow, static_cast<std::size_t>(std::atoi(a[4])));
  const auto frames = make_frames(*device, frame);
  if (!frames) return std::fprintf(stderr, "no memory\n"), 1;
  static_cast<void>(exchange(*device, flow, frames->get(), frame.size(), window, 1s));
  const auto seconds = std::chrono::duration<double>(std::atof(a[3]));
  const Counts counts = exchange(*device, flow, frames->get(), frame.size(), window,
                                 std::chrono::duration_cast<Steady::duration>(seconds));
  bench::tell(counts.back, seconds.count());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 9 && count != 10) return 64;
  return run(arguments, count == 10 ? std::strtoull(arguments[9], nullptr, 10) : 0);
}

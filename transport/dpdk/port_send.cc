// DpdkPort: functions that send.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "transport/dpdk/fetch.h"
#include "transport/dpdk/port.h"
#include "transport/packet/payload_place.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::dpdk {
namespace {

constexpr std::size_t kBlankAhead = 4;  // buffers that are prefetched before they are written to

void fetch_for_headers(const rte_mbuf* mbuf) noexcept {
  constexpr std::size_t kHeaders = 192;  // bytes of the headers of Ethernet, IPv4, UDP, packet and frame, rounded up
  fetch_to_write(rte_pktmbuf_mtod(mbuf, std::byte*), kHeaders);
}

constexpr auto kStuckAfter = std::chrono::milliseconds(100);
constexpr auto kWaitsAtMost = std::chrono::seconds(3);  // the time for which a packet waits for its neighbour

std::size_t place_of(const packet::PacketAddress& to) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, to.ip.data(), sizeof low);
  std::memcpy(&high, to.ip.data() + sizeof low, sizeof high);
  const std::uint64_t mixed = (low ^ (high * 0x9E3779B97F4A7C15ULL) ^ to.port) * 0xC2B2AE3D27D4EB4FULL;
  return static_cast<std::size_t>(mixed >> 32U);
}

}  // namespace

[[gnu::noinline]] bool DpdkPort::make_route(Route& route, const packet::PacketAddress& to, std::uint32_t generation) {
  ethernet::Host& host = device_->host();
  const auto source = host.source_for(to.ip);
  const auto next_hop = host.next_hop(to.ip);
  route = {.to = to};
  if (!source || !next_hop) return false;
  ethernet::UdpFlow flow{.from_mac = host.settings().mac,
                         .vlan = host.settings().vlan,
                         .from = *source,
                         .to = to.ip,
                         .from_port = udp_port_,
                         .to_port = to.port,
                         .dscp = settings_.dscp,
                         .ecn = settings_.ecn ? ethernet::Ecn::capable_0 : ethernet::Ecn::not_capable};
  route.resolved = host.neighbours().find(*next_hop, flow.to_mac);
  if (!route.resolved) host.neighbours().want(*next_hop, Clock::now());
  route.next_hop = *next_hop;
  route.headers = ethernet::UdpTemplate(flow, device_->sends_checksums());
  route.bytes_max = datagram_bytes_max(to);
  route.generation = generation;
  route.second = second_;
  route.valid = true;
  return true;
}

/// Returns the headers for an address. It makes them again once a second, and after a change among the neighbours.
DpdkPort::Route* DpdkPort::route_to(const packet::PacketAddress& to) {
  Route& route = (*routes_)[place_of(to) % kRoutes];
  const std::uint32_t generation = device_->host().neighbours().generation();
  const bool fresh = route.valid && route.generation == generation && route.second == second_ && route.to == to;
  return fresh || make_route(route, to, generation) ? &route : nullptr;
}

rte_mbuf* DpdkPort::blank() noexcept {
  if (blank_count_ > kBlankAhead) fetch_for_headers(blank_[blank_count_ - 1 - kBlankAhead]);
  if (blank_count_ > 0) return blank_[--blank_count_];
  rte_mempool* const pool = device_->send_pool(settings_.queue).get();
  if (::rte_pktmbuf_alloc_bulk(pool, blank_.data(), kBlank) != 0) return ::rte_pktmbuf_alloc(pool);
  blank_count_ = kBlank - 1;
  for (std::size_t i = 0; i < kBlankAhead; ++i) fetch_for_headers(blank_[blank_count_ - i]);
  return blank_[blank_count_];
}

template <class Write>
void DpdkPort::fill(rte_mbuf* mbuf, const Route& route, std::size_t head_bytes, const Write& write,
                    std::span<const std::byte> payload, std::size_t payload_place) noexcept {
  const std::size_t before = route.headers.bytes();
  TRIBUTARY_ASSERT(before > 0 && payload_place < kSharedPayloads, "a datagram has headers of {} bytes, and place {}",
                   before, payload_place);
  const std::size_t bytes = head_bytes + payload.size();
  auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
  std::byte* const body = at + before;
  const SharedPayloads::Found shared = shared_.find(payload, payload_place);
  const bool copies = shared.mbuf == nullptr;
  mbuf->data_len = static_cast<std::uint16_t>(before + (copies ? bytes : head_bytes));
  mbuf->pkt_len = static_cast<std::uint32_t>(before + bytes);
  if (!copies) {
    mbuf->next = shared.mbuf;
    mbuf->nb_segs = 2;
    ++statistics_.sent_shared;
  }
  if (device_->sends_checksums().udp) {
    write(body, false);
    if (copies && !payload.empty()) std::memcpy(body + head_bytes, payload.data(), payload.size());
    route.headers.write(at, bytes, 0);
    mbuf->ol_flags = (route.headers.ipv4() ? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM : RTE_MBUF_F_TX_IPV6) |
                     RTE_MBUF_F_TX_UDP_CKSUM;
    mbuf->l2_len = (before - route.headers.ip_bytes() - ethernet::kUdpBytes) & 0x7FU;
    mbuf->l3_len = route.headers.ip_bytes() & 0x1FFU;
    return;
  }
  const ethernet::PartialSum of_head = write(body, true);
  const ethernet::PartialSum of_payload = copies ? ethernet::copy_and_sum(body + head_bytes, payload) : shared.sum;
  const bool odd = head_bytes % 2 != 0;
  route.headers.write(at, bytes, of_head + (odd ? ethernet::at_odd_place(of_payload) : of_payload));
}

template <class Write>
bool DpdkPort::send_parts(const packet::PacketAddress& to, std::size_t head_bytes, const Write& write,
                          std::span<const std::byte> payload, std::size_t payload_place) {
  if (!has_room()) return false;
  const Route* const route = route_to(to);
  if (route == nullptr) {
    ++statistics_.unsent_no_route;
    return true;
  }
  const std::size_t bytes = head_bytes + payload.size();
  if (bytes > route->bytes_max) {
    ++statistics_.unsent_too_long;
    return true;
  }
  rte_mbuf* const mbuf = blank();
  if (mbuf == nullptr) {
    ++statistics_.unsent_no_buffer;
    return false;
  }
  fill(mbuf, *route, head_bytes, write, payload, payload_place);
  ++statistics_.sent;
  statistics_.sent_bytes += bytes;
  route->resolved ? stage(mbuf) : keep_waiting(mbuf, route->next_hop);
  return true;
}

bool DpdkPort::send(const packet::PacketAddress& to, std::span<const std::byte> header,
                    std::span<const std::byte> payload) {
  const auto write = [&header](std::byte* at, bool sums) -> ethernet::PartialSum {
    if (sums) return ethernet::copy_and_sum_words(at, header);
    std::memcpy(at, header.data(), header.size());
    return 0;
  };
  return send_parts(to, header.size(), write, payload, packet::payload_place(payload.data()));
}

bool DpdkPort::send_frame(const packet::PacketAddress& to, const packet::FrameDatagram& frame) {
  const auto write = [&frame](std::byte* at, bool sums) -> ethernet::PartialSum {
    std::memcpy(at + packet::kPacketHeaderBytes, frame.frame_header.data(), kFrameHeaderBytes);
    if (sums) return ethernet::copy_and_sum_words(at, frame.packet_header) + frame.frame_header_sum;
    std::memcpy(at, frame.packet_header.data(), packet::kPacketHeaderBytes);
    return 0;
  };
  return send_parts(to, packet::kPacketHeaderBytes + kFrameHeaderBytes, write, frame.payload, frame.payload_place);
}

bool DpdkPort::has_room() noexcept {
  if (staged_count_ == kTransmitBurst) transmit();
  return staged_count_ < kTransmitBurst;
}

/// Stages a packet. The caller has checked that there is room.
void DpdkPort::stage(rte_mbuf* mbuf) noexcept {
  TRIBUTARY_ASSERT(staged_count_ < staged_.size(), "{} packets are staged, of at most {}", staged_count_ + 1,
                   staged_.size());
  staged_[staged_count_++] = mbuf;
}

/// Returns how many of the first `count` staged packets the device has taken.
std::size_t DpdkPort::hand_to_device(std::size_t count) noexcept {
  const std::size_t at_once = device_->pieces_at_once();
  std::size_t taken = 0;
  while (taken < count) {
    std::size_t end = std::min(count, taken + at_once);
    if (end < count) {  // with one buffer in each packet, the device may take more at once
      std::size_t whole = taken;
      while (whole < count && staged_[whole]->nb_segs == 1) ++whole;
      end = std::max(end, whole);
    }
    taken += ::rte_eth_tx_burst(id_, settings_.queue, staged_.data() + taken, static_cast<std::uint16_t>(end - taken));
    if (taken < end) break;
  }
  return taken;
}

void DpdkPort::transmit() noexcept {
  answers_staged_ = false;
  if (staged_count_ == 0) return;
  std::unique_lock<std::mutex> turn;
  if (turns_ != nullptr) turn = std::unique_lock(turns_->send);
  auto count = static_cast<std::uint16_t>(staged_count_);
  if (device_->sends_checksums().udp) count = ::rte_eth_tx_prepare(id_, settings_.queue, staged_.data(), count);
  const std::size_t taken = hand_to_device(count);
  TRIBUTARY_ASSERT(taken <= staged_count_, "the device has taken {} of {} packets", taken, staged_count_);
  if (taken > 0) stuck_since_ = {};
  staged_count_ -= taken;
  std::copy_n(staged_.begin() + static_cast<std::ptrdiff_t>(taken), staged_count_, staged_.begin());
}

void DpdkPort::flush() {
  shared_.forget();
  transmit();
  if (staged_count_ > 0) drop_if_stuck();
}

/// A device takes no packets while its link is down. The packets wait for the next flush(). If they have waited too
/// long to be useful, they are dropped.
void DpdkPort::drop_if_stuck() {
  const TimePoint now = Clock::now();
  if (stuck_since_ == TimePoint{}) stuck_since_ = now;
  if (now - stuck_since_ < kStuckAfter) return;
  statistics_.unsent_full += staged_count_;
  ::rte_pktmbuf_free_bulk(staged_.data(), static_cast<unsigned>(staged_count_));
  staged_count_ = 0;
}

void DpdkPort::keep_waiting(rte_mbuf* mbuf, const ethernet::IpAddress& next_hop) {
  if (waiting_count_ == kWaiting) {
    drop(mbuf, statistics_.unsent_no_neighbour);
    return;
  }
  waiting_[waiting_count_++] = {mbuf, next_hop, Clock::now()};
}

/// Sends datagrams whose neighbours are known now. The other datagrams go on waiting in their order, for at most
/// kWaitsAtMost.
void DpdkPort::retry_waiting(TimePoint now) {
  std::size_t left = 0;
  for (Waiting& one : std::span(waiting_).first(waiting_count_)) {
    ethernet::MacAddress mac;
    if (has_room() && device_->host().neighbours().find(one.next_hop, mac)) {
      std::memcpy(rte_pktmbuf_mtod(one.mbuf, std::byte*), mac.bytes.data(), mac.bytes.size());
      stage(one.mbuf);
      answers_staged_ = true;
    } else if (now - one.since > kWaitsAtMost) {
      drop(one.mbuf, statistics_.unsent_no_neighbour);
    } else {
      waiting_[left++] = one;
    }
  }
  waiting_count_ = left;
}

}  // namespace tributary::transport::dpdk

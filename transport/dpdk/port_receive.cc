// DpdkPort: functions that receive.
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>

#include <algorithm>

#include "transport/dpdk/port.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/quotation.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::dpdk {
namespace {

// The number of packets that are prefetched, as whole packets or headers only, while an earlier one is read.
constexpr std::size_t kAhead = 2;
constexpr std::size_t kHeadersAhead = 16;

constexpr std::uint64_t kIpGood = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
constexpr std::uint64_t kUdpGood = RTE_MBUF_F_RX_L4_CKSUM_GOOD;

ethernet::CheckedByDevice checked(const rte_mbuf& mbuf) noexcept {
  return {.ip = (mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == kIpGood,
          .udp = (mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == kUdpGood};
}

/// Prefetches the headers, or the whole packet if its checksum is verified here.
void prefetch(const rte_mbuf* mbuf, bool whole) noexcept {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLinesMax = 24;  // cache lines of a usual frame; the processor prefetches the rest
  const auto* const at = rte_pktmbuf_mtod(mbuf, const std::byte*);
  const std::size_t bytes = whole ? std::min<std::size_t>(mbuf->data_len, kLinesMax * kLine) : kLine;
  for (std::size_t i = 0; i < bytes; i += kLine) rte_prefetch0(at + i);
}

}  // namespace

std::size_t DpdkPort::receive(std::span<packet::ReceivedPacket> into) {
  if (!thread_adopted_) adopt_thread();
  free_returned();
  give_back_shown();
  const std::uint64_t cycles = ::rte_rdtsc();
  if (cycles >= next_turn_) {
    next_turn_ = cycles + turn_cycles_;
    look_after(Clock::now());
  }
  std::array<rte_mbuf*, kReceiveBurst> burst;
  const std::size_t count = take_burst(std::span(burst).first(std::min(into.size(), burst.size())));
  if (count > 0) last_arrival_ = cycles;
  const std::size_t ahead = std::min(leaves_checksums_ ? kHeadersAhead : kAhead, count);
  for (std::size_t i = 0; i < ahead; ++i) prefetch(burst[i], !leaves_checksums_);
  std::size_t shown = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) prefetch(burst[i + ahead], !leaves_checksums_);
    if (show(burst[i], into[shown])) ++shown;
  }
  if (answers_staged_) transmit();
  return shown;
}

/// Called by the first receive(): a port belongs to the thread that receives.
void DpdkPort::adopt_thread() {
  thread_adopted_ = true;
  Eal::adopt_thread();
  if (settings_.core < 0) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(settings_.core), &cores);
  // A thread that cannot have this core runs where it is. That is slower, but no reason to stop.
  static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof cores, &cores));
}

void DpdkPort::give_back_shown() noexcept {
  ::rte_pktmbuf_free_bulk(shown_.data(), static_cast<unsigned>(shown_count_));  // skips nullptr: buffers that were kept
  shown_count_ = 0;
}

/// Keeps a buffer. The first keeper takes over the port's own reference: adding one and removing one would be two
/// atomic operations.
bool DpdkPort::keep(void* buffer) noexcept {
  if (kept_count_ == kKept) return false;
  ++kept_count_;
  auto* const mbuf = static_cast<rte_mbuf*>(buffer);
  const std::uint32_t at = mbuf->hash.usr;
  if (at < shown_count_ && shown_[at] == mbuf) {
    shown_[at] = nullptr;
  } else {
    rte_mbuf_refcnt_update(mbuf, 1);
  }
  return true;
}

/// Takes a buffer back. The next receive() frees it: until then, readers to which the packet was shown may still read
/// it. returned_ has room for the buffers that were kept before the last receive(), and for all buffers that this
/// receive() has shown.
void DpdkPort::give_back(void* buffer) noexcept {
  TRIBUTARY_ASSERT(kept_count_ > 0, "a buffer is given back, and none is kept, with {} returned", returned_count_);
  --kept_count_;
  auto* const mbuf = static_cast<rte_mbuf*>(buffer);
  if (rte_mbuf_refcnt_read(mbuf) > 1) return ::rte_pktmbuf_free(mbuf);  // other users keep the buffer
  TRIBUTARY_ASSERT(returned_count_ < returned_.size(), "{} buffers are returned, of at most {}", returned_count_ + 1,
                   returned_.size());
  returned_[returned_count_++] = mbuf;
}

void DpdkPort::free_returned() noexcept {
  TRIBUTARY_ASSERT(returned_count_ <= returned_.size(), "{} buffers are returned", returned_count_);
  ::rte_pktmbuf_free_bulk(returned_.data(), static_cast<unsigned>(returned_count_));
  returned_count_ = 0;
}

std::size_t DpdkPort::take_burst(std::span<rte_mbuf*> burst) noexcept {
  std::size_t count = 0;
  if (rte_ring* const ring = device_->handed_over(place_)) {
    count = ::rte_ring_dequeue_burst(ring, reinterpret_cast<void**>(burst.data()),
                                     static_cast<unsigned>(burst.size() / 2), nullptr);
  }
  // If another port of the queue is receiving, it hands over this port's packets.
  if (turns_ != nullptr && !turns_->receive.try_lock()) return count;
  count +=
      ::rte_eth_rx_burst(id_, settings_.queue, burst.data() + count, static_cast<std::uint16_t>(burst.size() - count));
  if (turns_ != nullptr) turns_->receive.unlock();
  TRIBUTARY_ASSERT(count <= burst.size(), "{} packets came in a burst of {}", count, burst.size());
  return count;
}

void DpdkPort::drop(rte_mbuf* mbuf, std::uint64_t& counter) noexcept {
  ++counter;
  ::rte_pktmbuf_free(mbuf);
}

/// Notes that a packet is shown, until it is given back or receive() is called again. The packet remembers
/// its entry for keep().
void DpdkPort::note_shown(rte_mbuf* mbuf) noexcept {
  TRIBUTARY_ASSERT(shown_count_ < shown_.size(), "{} packets are shown, of at most {}", shown_count_ + 1,
                   shown_.size());
  mbuf->hash.usr = static_cast<std::uint32_t>(shown_count_);
  shown_[shown_count_++] = mbuf;
}

/// Returns true if `as` shows the datagram and the port still owns the packet; false if the packet was handed over,
/// answered or dropped.
bool DpdkPort::show(rte_mbuf* mbuf, packet::ReceivedPacket& as) noexcept {
  // The processor cannot join parts of a packet that lie in a GPU's memory.
  if (mbuf->nb_segs > 1 && (seen_at_ != 0 || ::rte_pktmbuf_linearize(mbuf) != 0)) {
    drop(mbuf, statistics_.dropped_scattered);
    return false;
  }
  const std::span<std::byte> bytes(rte_pktmbuf_mtod(mbuf, std::byte*) + seen_at_, mbuf->data_len);
  if (leaves_checksums_ && show_plain(mbuf, bytes, as)) return true;
  ethernet::CheckedByDevice by_device = checked(*mbuf);
  by_device.udp_later = leaves_checksums_;
  const ethernet::Frame frame = ethernet::parse_frame(bytes, by_device);
  if (frame.from_mac == device_->host().settings().mac) {  // sockets also see the kernel's packets from the interface
    drop(mbuf, statistics_.dropped_foreign);
    return false;
  }
  if (frame.kind == ethernet::FrameKind::udp) return take_datagram(mbuf, frame, bytes, as);
  if (frame.kind == ethernet::FrameKind::dropped) {
    drop(mbuf, statistics_.dropped[static_cast<std::size_t>(frame.drop)]);
    return false;
  }
  switch (take_refusal(mbuf, frame, bytes, as)) {
    case Refusal::shown:
      return true;
    case Refusal::handed_over:
      return false;
    case Refusal::none:
      break;
  }
  take_control(frame, bytes);
  ::rte_pktmbuf_free(mbuf);
  return false;
}

/// Shows a datagram of the usual form. Returns false if parse_frame() must check the packet.
bool DpdkPort::show_plain(rte_mbuf* mbuf, std::span<std::byte> bytes, packet::ReceivedPacket& as) noexcept {
  ethernet::PlainDatagram plain;
  if (!plain_.match(bytes, plain)) return false;
  // Writes field by field: the copy of an object that was just written would wait for that object's
  // stores.
  plain.store_from(as.from.ip);
  as.from.port = plain.from_port;
  as.bytes = bytes.subspan(plain.body_offset, plain.body_bytes);
  as.congestion_experienced = plain.ecn == ethernet::Ecn::congestion_experienced;
  as.refused = false;
  as.arrived = {};
  as.buffer = mbuf;
  as.udp_besides.reset();
  if (!checked(*mbuf).udp) as.udp_besides = plain.udp_besides;
  ++statistics_.received;
  statistics_.received_bytes += plain.body_bytes;
  statistics_.marked += as.congestion_experienced ? 1 : 0;
  note_shown(mbuf);
  return true;
}

/// Handles an ICMP error. It says that a datagram's destination does not exist, or that the path carries only shorter
/// packets. The protocol above gets the quoted packet, and checks whether it has sent this packet.
DpdkPort::Refusal DpdkPort::take_refusal(rte_mbuf* mbuf, const ethernet::Frame& frame, std::span<std::byte> bytes,
                                         packet::ReceivedPacket& as) noexcept {
  const auto quotation = ethernet::parse_quotation(frame, bytes);
  if (!quotation || !is_for_us(frame) || quotation->from != frame.to) return Refusal::none;
  const std::uint32_t path_bytes = quotation->mtu.value_or(0);  // 0 from a router that does not know RFC 1191
  if (!quotation->port_unreachable && path_bytes == 0) return Refusal::none;
  if (quotation->from_port != udp_port_) {
    const std::uint8_t place = device_->place_of(quotation->from_port);
    if (place == Device::kNobody || place == place_) return Refusal::none;
    hand_over(mbuf, place);
    return Refusal::handed_over;
  }
  as = {.from = {quotation->to, quotation->to_port},
        .bytes = bytes.subspan(quotation->payload_offset, quotation->payload_bytes),
        .refused = true,
        .path_bytes = path_bytes};
  ++statistics_.control;
  note_shown(mbuf);
  return Refusal::shown;
}

bool DpdkPort::is_for_us(const ethernet::Frame& frame) const noexcept {
  const ethernet::HostSettings& host = device_->host().settings();
  return frame.to_mac == host.mac && frame.vlan == host.vlan && device_->host().has(frame.to);
}

bool DpdkPort::take_datagram(rte_mbuf* mbuf, const ethernet::Frame& frame, std::span<std::byte> bytes,
                             packet::ReceivedPacket& as) noexcept {
  if (!is_for_us(frame)) {
    drop(mbuf, statistics_.dropped_foreign);
    return false;
  }
  const std::span<std::byte> body = bytes.subspan(frame.body_offset, frame.body_bytes);
  if (frame.to_port != udp_port_) {
    if (frame.udp_besides && !ethernet::udp_right(*frame.udp_besides, body)) {
      drop(mbuf, statistics_.dropped[static_cast<std::size_t>(ethernet::Drop::udp_checksum)]);
      return false;
    }
    const std::uint8_t place = device_->place_of(frame.to_port);
    if (place == Device::kNobody || place == place_) {
      send_control([&](std::span<std::byte> out) { return device_->host().refuse(frame, bytes, now_, out); });
      drop(mbuf, statistics_.dropped_port);
    } else {
      hand_over(mbuf, place);
    }
    return false;
  }
  as = {.from = {frame.from, frame.from_port},
        .bytes = body,
        .congestion_experienced = frame.ecn == ethernet::Ecn::congestion_experienced,
        .buffer = mbuf,
        .udp_besides = frame.udp_besides};
  ++statistics_.received;
  statistics_.received_bytes += frame.body_bytes;
  statistics_.marked += as.congestion_experienced ? 1 : 0;
  note_shown(mbuf);
  return true;
}

/// Hands a packet to another port. Its checksums need not be verified again.
void DpdkPort::hand_over(rte_mbuf* mbuf, std::uint8_t place) noexcept {
  TRIBUTARY_ASSERT(place != place_ && device_->handed_over(place) != nullptr, "a packet is handed over to place {}",
                   place);
  mbuf->ol_flags |= kIpGood | kUdpGood;
  if (::rte_ring_enqueue(device_->handed_over(place), mbuf) != 0) {
    drop(mbuf, statistics_.dropped_handed_over);
  } else {
    ++statistics_.handed_over;
  }
}

void DpdkPort::take_control(const ethernet::Frame& frame, std::span<const std::byte> bytes) {
  ethernet::Host& host = device_->host();
  if (frame.to_mac != host.settings().mac && !frame.to_mac.is_group()) {
    ++statistics_.dropped_foreign;
    return;
  }
  ++statistics_.control;
  const std::uint32_t before = host.neighbours().generation();
  send_control([&](std::span<std::byte> out) { return host.answer(frame, bytes, now_, out); });
  if (waiting_count_ > 0 && host.neighbours().generation() != before) retry_waiting(now_);
}

}  // namespace tributary::transport::dpdk

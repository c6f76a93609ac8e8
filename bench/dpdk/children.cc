#include "bench/dpdk/children.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "transport/ethernet/control_writer.h"

namespace tributary::bench {

using namespace transport;
using namespace transport::packet;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kFirstName = 0x10001;  // first name of a connection
constexpr std::size_t kInDevice = 2048;        // packets that the device and the other side may hold
constexpr std::size_t kHeads = kPacketHeaderBytes + kFrameHeaderBytes;

}  // namespace

Children::Children(dpdk::Device& device, std::size_t count, const ChildrenSetting& setting)
    : device_(device), setting_(setting), headers_(setting.flow, {}), payload_(setting.segment_bytes), all_(count) {
  for (std::size_t i = 0; i < payload_.size() / sizeof(float); ++i) {
    const auto value = static_cast<float>(i % 1000);
    std::memcpy(payload_.data() + i * sizeof value, &value, sizeof value);
  }
  payload_sum_ = ethernet::partial_sum(payload_);
  suffix_ = Crc32cSuffix::of(payload_);
  frame_.type = FrameType::contribution;
  frame_.flags = frame_flags::kWantsResult;
  frame_.payload_bytes = setting.segment_bytes;
  frame_.dtype = DType::float32;
  frame_.count = setting.segment_bytes / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) all_[i].ours = kFirstName + i;
  write_payloads();
}

/// Writes each payload only once, because it never changes, and no other code writes to these buffers.
void Children::write_payloads() {
  const std::size_t under_way = all_.size() * setting_.window;
  const auto mbufs = static_cast<std::uint32_t>(under_way + kInDevice + kBurst + 2 * dpdk::kCache);
  auto pool = dpdk::PacketPool::make({.name = "children" + std::to_string(setting_.queue),
                                      .mbufs = mbufs,
                                      .data_room = dpdk::data_room(device_.mtu())});
  if (!pool) return;
  contributions_ = std::move(*pool);
  std::vector<rte_mbuf*> each(mbufs);
  if (::rte_pktmbuf_alloc_bulk(contributions_->get(), each.data(), mbufs) != 0) return;
  for (rte_mbuf* const mbuf : each) {
    std::memcpy(rte_pktmbuf_mtod(mbuf, std::byte*) + headers_.bytes() + kHeads, payload_.data(), payload_.size());
  }
  ::rte_pktmbuf_free_bulk(each.data(), mbufs);
}

bool Children::knows_mac() const noexcept {
  return setting_.flow.to_mac != ethernet::MacAddress{};
}

/// Reads the aggregator's MAC address from any answer to an ARP request.
void Children::learn_mac(const rte_mbuf* mbuf) {
  std::memcpy(setting_.flow.to_mac.bytes.data(), rte_pktmbuf_mtod(mbuf, const std::byte*) + RTE_ETHER_ADDR_LEN,
              RTE_ETHER_ADDR_LEN);
  headers_ = ethernet::UdpTemplate(setting_.flow, {});
}

void Children::ask() {
  tell_where_we_are();
  for (Child& child : all_) {
    if (child.theirs == 0 && knows_mac()) open(child);
  }
  flush();
}

bool Children::all_connected() const noexcept {
  for (const Child& child : all_) {
    if (child.theirs == 0) return false;
  }
  return true;
}

void Children::turn() {
  take_all();
  contribute();
  flush();
}

std::uint64_t Children::exchange(Clock::duration time) {
  const std::uint64_t before = results_;
  Clock::time_point told{};
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    if (Clock::now() - told > 100ms) {
      told = Clock::now();
      tell_where_we_are();
    }
    for (int i = 0; i < 64; ++i) turn();
  }
  return results_ - before;
}

rte_mbuf* Children::blank() {
  return ::rte_pktmbuf_alloc(device_.send_pool(setting_.queue).get());
}

void Children::stage(rte_mbuf* mbuf, std::size_t bytes) {
  mbuf->data_len = static_cast<std::uint16_t>(bytes);
  mbuf->pkt_len = mbuf->data_len;
  staged_[staged_count_++] = mbuf;
}

void Children::flush() {
  if (staged_count_ == 0) return;
  const std::uint16_t taken = ::rte_eth_tx_burst(device_.id(), setting_.send_queue, staged_.data(), staged_count_);
  staged_count_ = static_cast<std::uint16_t>(staged_count_ - taken);
  std::copy_n(staged_.begin() + taken, staged_count_, staged_.begin());  // the ranges may overlap
}

void Children::tell_where_we_are() {
  const auto& flow = setting_.flow;
  const ethernet::Station us{flow.from_mac, flow.from};
  const ethernet::MacAddress at = knows_mac() ? flow.to_mac : ethernet::kBroadcastMac;
  for (const auto operation : {ethernet::ArpOperation::request, ethernet::ArpOperation::reply}) {
    rte_mbuf* const mbuf = staged_count_ < staged_.size() ? blank() : nullptr;
    if (mbuf == nullptr) return;
    const std::span out(rte_pktmbuf_mtod(mbuf, std::byte*), 128);
    stage(mbuf, ethernet::write_arp(out, 0, operation, us, {flow.to_mac, flow.to}, at));
  }
}

void Children::open(Child& child) {
  rte_mbuf* const mbuf = staged_count_ < staged_.size() ? blank() : nullptr;
  if (mbuf == nullptr) return;
  auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
  auto* const body = at + headers_.bytes();
  const Handshake said{.connection = child.ours, .cookie = child.cookie, .credit = 1U << 20U, .datagram_bytes = 1472};
  std::memcpy(body + kPacketHeaderBytes, &said, sizeof said);
  encode({.type = PacketType::open, .connection = child.ours}, std::span<std::byte, kPacketHeaderBytes>(body, 64),
         std::span(body + kPacketHeaderBytes, sizeof said), {});
  const std::size_t bytes = kPacketHeaderBytes + sizeof said;
  headers_.write(at, bytes, ethernet::partial_sum({body, bytes}));
  stage(mbuf, headers_.bytes() + bytes);
}

/// Sends one packet of each child in turn, as the packets of many hosts mix at a port. `in_rows`: sends as many packets
/// of one child as its window allows, then of the next child.
void Children::contribute() {
  std::size_t full = 0;  // number of successive children whose windows are full
  while (full < all_.size() && staged_count_ < kBurst) {
    Child& child = all_[next_];
    const bool open = child.sequence < child.results + setting_.window;
    if (open) {
      rte_mbuf* const mbuf = contributions_ ? ::rte_pktmbuf_alloc(contributions_->get()) : nullptr;
      if (mbuf == nullptr) return;
      write(child, mbuf);
    }
    full = open ? 0 : full + 1;
    if (!open || !setting_.in_rows) next_ = (next_ + 1) % all_.size();
  }
}

void Children::write(Child& child, rte_mbuf* mbuf) {
  auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
  auto* const body = at + headers_.bytes();
  frame_.sequence = frame_.operation = child.sequence;
  const std::uint64_t before = child.came == 0 ? 0 : child.came - 1;
  PacketHeader header{.flags = child.came > 0 ? packet_flags::kAcks : std::uint16_t{0},
                      .connection = child.theirs,
                      .number = child.number++,
                      .bitmap = before >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << before) - 1,
                      .offset = static_cast<std::uint32_t>(child.sequence * (kFrameHeaderBytes + payload_.size())),
                      .received = static_cast<std::uint32_t>(child.received),
                      .credit = 1U << 20U,
                      .largest = static_cast<std::uint32_t>(child.largest)};
  header.payload_bytes = static_cast<std::uint16_t>(kFrameHeaderBytes + payload_.size());
  std::memcpy(body, &header, kPacketHeaderBytes);
  encode(frame_, std::span<std::byte, kFrameHeaderBytes>(body + kPacketHeaderBytes, kFrameHeaderBytes));
  std::uint32_t checksum = crc32c({body, offsetof(PacketHeader, checksum)});
  checksum = suffix_.behind(crc32c({body + kPacketHeaderBytes, kFrameHeaderBytes}, checksum));
  std::memcpy(body + offsetof(PacketHeader, checksum), &checksum, sizeof checksum);
  headers_.write(at, kHeads + payload_.size(), ethernet::partial_sum({body, kHeads}) + payload_sum_);
  stage(mbuf, headers_.bytes() + kHeads + payload_.size());
  ++child.sequence;
}

void Children::take_all() {
  std::array<rte_mbuf*, 64> burst;
  const std::uint16_t got = ::rte_eth_rx_burst(device_.id(), setting_.queue, burst.data(), 64);
  for (std::uint16_t i = 0; i < got; ++i) take(burst[i]);
  ::rte_pktmbuf_free_bulk(burst.data(), got);
}

void Children::take(const rte_mbuf* mbuf) {
  if (!knows_mac()) learn_mac(mbuf);
  const auto* const body = rte_pktmbuf_mtod(mbuf, const std::byte*) + headers_.bytes();
  if (mbuf->data_len < headers_.bytes() + kPacketHeaderBytes) return;
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), body, sizeof header);
  const std::uint64_t number = header.connection - kFirstName;
  if (header.magic != kPacketMagic || number >= all_.size()) return;
  Child& child = all_[number];
  if (header.type != PacketType::data) {
    Handshake said;
    std::memcpy(static_cast<void*>(&said), body + kPacketHeaderBytes, sizeof said);
    if (header.type == PacketType::challenge) child.cookie = said.cookie;
    if (header.type == PacketType::accept) child.theirs = said.connection;
    return;
  }
  if (child.came++ == 0 || header.number > child.largest) child.largest = header.number;
  if (header.payload_bytes == 0) return;
  const std::uint64_t offset = expand(header.offset, child.received);
  if (header.payload_bytes != kFrameHeaderBytes + payload_.size() || offset != child.received) {
    wrong_ |= offset >= child.received;  // otherwise the aggregator has sent old bytes again
    return;
  }
  child.received += header.payload_bytes;
  if (child.results++ == 0) check(mbuf);
  ++results_;
}

/// Checks the first result of each child; its payload may lie in a separate buffer.
void Children::check(const rte_mbuf* mbuf) {
  std::vector<float> room(payload_.size() / sizeof(float));
  const auto* const numbers =
      static_cast<const std::byte*>(::rte_pktmbuf_read(mbuf, static_cast<std::uint32_t>(headers_.bytes() + kHeads),
                                                       static_cast<std::uint32_t>(payload_.size()), room.data()));
  if (numbers == nullptr) {
    wrong_ = true;
    return;
  }
  const std::size_t summed = setting_.lane_children == 0 ? all_.size() : setting_.lane_children;
  for (std::size_t i = 0; i < room.size(); ++i) {
    float value = 0;
    std::memcpy(&value, numbers + i * sizeof value, sizeof value);
    wrong_ |= value != static_cast<float>(i % 1000) * static_cast<float>(summed);
  }
}

}  // namespace tributary::bench

#include "tests/dpdk/port/marking_wire.h"

#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>
#include <optional>

#include "tests/dpdk/port/rings.h"

namespace tributary::transport::dpdk::test {
namespace {

constexpr unsigned kEcnBits = 3;

/// Sets the datagram's mark to `with`. Returns the mark that it had; nullopt if the frame is not a datagram.
std::optional<Mark> mark(rte_mbuf& frame, Mark with) {
  const auto* const ethernet = rte_pktmbuf_mtod(&frame, const rte_ether_hdr*);
  if (ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
    auto* const ip = rte_pktmbuf_mtod_offset(&frame, rte_ipv4_hdr*, sizeof *ethernet);
    if (ip->next_proto_id != IPPROTO_UDP) return std::nullopt;
    const auto before = static_cast<Mark>(ip->type_of_service & kEcnBits);
    ip->type_of_service = static_cast<std::uint8_t>((ip->type_of_service & ~kEcnBits) | static_cast<unsigned>(with));
    ip->hdr_checksum = 0;
    ip->hdr_checksum = rte_ipv4_cksum(ip);
    return before;
  }
  if (ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) {
    auto* const ip = rte_pktmbuf_mtod_offset(&frame, rte_ipv6_hdr*, sizeof *ethernet);
    if (ip->proto != IPPROTO_UDP) return std::nullopt;
    constexpr unsigned kShift = 20;
    const std::uint32_t first = rte_be_to_cpu_32(ip->vtc_flow);
    ip->vtc_flow = rte_cpu_to_be_32((first & ~(kEcnBits << kShift)) | static_cast<std::uint32_t>(with) << kShift);
    return static_cast<Mark>((first >> kShift) & kEcnBits);
  }
  return std::nullopt;
}

rte_ring* new_ring(const std::string& name) {
  return ::rte_ring_create(name.c_str(), 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

}  // namespace

MarkingWire::MarkingWire() {
  const auto started = eal();
  static int wires = 0;
  const std::string name = "marked" + std::to_string(wires++);
  for (std::size_t end = 0; end < 2; ++end) {
    const std::string device = name + (end == 0 ? "a" : "b");
    sent_[end] = new_ring(device + "_sent");
    to_come_[end] = new_ring(device + "_come");
    const int id = ::rte_eth_from_rings(device.c_str(), &to_come_[end], 1, &sent_[end], 1, 0);
    EXPECT_GE(id, 0);
    std::array<char, RTE_ETH_NAME_MAX_LEN> full{};
    ::rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(id), full.data());
    devices_[end] = full.data();
  }
}

std::size_t MarkingWire::carry(std::size_t from, Mark with) {
  std::size_t datagrams = 0;
  for (void* taken = nullptr; ::rte_ring_dequeue(sent_[from], &taken) == 0;) {
    auto* const frame = static_cast<rte_mbuf*>(taken);
    if (const auto before = mark(*frame, with)) {
      ++datagrams;
      said.insert(*before);
    }
    if (::rte_ring_enqueue(to_come_[1 - from], frame) != 0) {
      ADD_FAILURE() << "the wire has more frames than the receiver's queue holds";
      ::rte_pktmbuf_free(frame);
    }
  }
  return datagrams;
}

void MarkingWire::put(std::size_t to, rte_mempool* pool, std::span<const std::byte> frame) {
  rte_mbuf* const mbuf = ::rte_pktmbuf_alloc(pool);
  char* const at = mbuf != nullptr ? rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size())) : nullptr;
  ASSERT_NE(at, nullptr);
  std::memcpy(at, frame.data(), frame.size());
  ASSERT_EQ(::rte_ring_enqueue(to_come_[to], mbuf), 0);
}

}  // namespace tributary::transport::dpdk::test

#pragma once
// The counts of a port, on its thread.
#include <array>
#include <cstdint>

#include "transport/ethernet/parser.h"

namespace tributary::transport::dpdk {

struct PortStatistics {
  std::uint64_t received = 0, received_bytes = 0;  // datagrams that were shown, and what UDP carried
  std::uint64_t sent = 0, sent_bytes = 0;          // taken by send()
  std::uint64_t sent_shared = 0;                   // of them, those whose payload other packets had, too
  std::uint64_t marked = 0;                        // of those received, with the mark of congestion
  // Came and were not shown:
  std::array<std::uint64_t, ethernet::kDrops> dropped{};  // by Drop
  std::uint64_t dropped_foreign = 0;                      // another station, address, or VLAN
  std::uint64_t dropped_port = 0;                         // no port of ours
  std::uint64_t dropped_scattered = 0;                    // in pieces that do not fit in one buffer
  std::uint64_t dropped_handed_over = 0;                  // for another queue, whose ring was full
  std::uint64_t handed_over = 0;
  std::uint64_t control = 0;  // ARP, ICMP, neighbour discovery
  // Were to be sent and were not, although all but the second were taken:
  std::uint64_t unsent_full = 0;          // the device took nothing for long
  std::uint64_t unsent_no_buffer = 0;     // send() was false
  std::uint64_t unsent_no_route = 0;      // no address of that family, no gateway
  std::uint64_t unsent_no_neighbour = 0;  // it did not answer, or too many wait for theirs
  std::uint64_t unsent_too_long = 0;
};

}  // namespace tributary::transport::dpdk

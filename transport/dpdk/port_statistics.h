#pragma once
// The counts of a port. Only the port's thread reads and writes them.
#include <array>
#include <cstdint>

#include "transport/ethernet/parser.h"

namespace tributary::transport::dpdk {

struct PortStatistics {
  std::uint64_t received = 0, received_bytes = 0;  // datagrams that receive() gave out; bytes of their payloads
  std::uint64_t sent = 0, sent_bytes = 0;          // datagrams that send() took, and bytes of their UDP payloads
  std::uint64_t sent_shared = 0;                   // datagrams of `sent` whose payload lies in a shared buffer
  std::uint64_t marked = 0;                        // datagrams received with the mark of congestion
  // Counts of frames that were received, but not given out:
  std::array<std::uint64_t, ethernet::kDrops> dropped{};  // frames that are malformed; index: Drop
  std::uint64_t dropped_foreign = 0;                      // frames for another station, address or VLAN
  std::uint64_t dropped_port = 0;                         // datagrams for no port of this device
  std::uint64_t dropped_scattered = 0;                    // packets in several buffers that cannot be joined into one
  std::uint64_t dropped_handed_over = 0;                  // packets for another queue, whose ring was full
  std::uint64_t handed_over = 0;
  std::uint64_t control = 0;  // frames of ARP, ICMP and neighbour discovery
  // Counts of datagrams that were not sent. send() had taken all of them, except the datagrams of unsent_no_buffer:
  std::uint64_t unsent_full = 0;          // the device took no packets for a long time
  std::uint64_t unsent_no_buffer = 0;     // the pool was empty, and send() returned false
  std::uint64_t unsent_no_route = 0;      // the device has no address of that family, or no gateway
  std::uint64_t unsent_no_neighbour = 0;  // the neighbour did not answer, or too many datagrams wait
  std::uint64_t unsent_too_long = 0;
};

}  // namespace tributary::transport::dpdk

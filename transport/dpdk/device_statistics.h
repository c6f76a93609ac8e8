#pragma once
// The counts from a device's driver.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tributary::transport::dpdk {

struct DeviceCounters {
  std::uint64_t received_packets = 0, received_bytes = 0;
  std::uint64_t sent_packets = 0, sent_bytes = 0;
  std::uint64_t receive_missed = 0;     // packets lost because the queue was full: this host was too slow
  std::uint64_t receive_errors = 0;     // packets damaged on the wire
  std::uint64_t receive_no_buffer = 0;  // packets lost because the pool was empty
  std::uint64_t send_errors = 0;
  std::vector<std::pair<std::string, std::uint64_t>> others;  // the driver's own counts of loss that are not 0
};

[[nodiscard]] DeviceCounters read_counters(std::uint16_t device);

}  // namespace tributary::transport::dpdk

#pragma once
// Two devices in one process, wired to each other by rings in memory: what one sends, the other receives.
#include <array>
#include <memory>
#include <string>

#include "transport/dpdk/port.h"

namespace tributary::transport::dpdk::test {

/// DPDK of this process; it ends with the process, and is started by the first who asks. Fails the test where it does
/// not start.
std::shared_ptr<Eal> eal(bool one_file = false);

/// The names of two devices with `queues` each, which DeviceSettings::device takes. New ones at each call: they live as
/// long as the process.
std::array<std::string, 2> wired_devices(std::uint16_t queues = 1);
/// Both frames' ends: what is in the rings is gone.
inline DeviceSettings device_settings(const std::string& name, const char* ipv4, const char* ipv6) {
  return {.device = name,
          .addresses = {ethernet::parse_prefix(ipv4).value(), ethernet::parse_prefix(ipv6).value()},
          .descriptors = {256, 256}};
}

}  // namespace tributary::transport::dpdk::test

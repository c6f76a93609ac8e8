#pragma once
// Two devices in one process that rings in memory connect: each receives what the other sends.
#include <array>
#include <memory>
#include <string>

#include "transport/dpdk/port.h"

namespace tributary::transport::dpdk::test {

/// Returns DPDK's environment of this process. The first call starts it, and it ends with the process. Fails the test
/// if DPDK does not start.
std::shared_ptr<Eal> eal(bool one_file = false);

/// Makes two devices with `queues` each, and returns their names for DeviceSettings::device. Each call makes two
/// new devices, which live as long as the process.
std::array<std::string, 2> wired_devices(std::uint16_t queues = 1);
/// Returns the settings of a device with these two addresses and 256 descriptors for each direction.
inline DeviceSettings device_settings(const std::string& name, const char* ipv4, const char* ipv6) {
  return {.device = name,
          .addresses = {ethernet::parse_prefix(ipv4).value(), ethernet::parse_prefix(ipv6).value()},
          .descriptors = {256, 256}};
}

}  // namespace tributary::transport::dpdk::test

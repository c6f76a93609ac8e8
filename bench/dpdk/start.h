#pragma once
// Code that starts those programs of this folder that load a device.
#include <rte_ether.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "transport/dpdk/device.h"

namespace tributary::bench {

inline transport::ethernet::MacAddress parse_mac(const char* text) {
  rte_ether_addr mac{};
  transport::ethernet::MacAddress parsed;
  if (::rte_ether_unformat_addr(text, &mac) == 0) std::memcpy(parsed.bytes.data(), mac.addr_bytes, 6);
  return parsed;
}

inline void stay_on(const char* core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(std::atoi(core)), &cores);
  ::sched_setaffinity(0, sizeof cores, &cores);
}

/// Opens a device with one address, waits for the other end, and binds this thread to `core`. nullptr: a step failed;
/// the function has printed the reason.
inline std::shared_ptr<transport::dpdk::Device> open_device(const char* device, const char* address, const char* core) {
  using namespace transport;
  const auto failed = [](const char* why) {
    std::fprintf(stderr, "%s\n", why);
    return nullptr;
  };
  auto eal = dpdk::Eal::start({.memory_bytes = 128U << 20U});
  if (!eal) return failed(eal.error().message.c_str());
  auto opened = dpdk::Device::open(*eal, {.device = device, .addresses = {{ethernet::parse_ip(address).value(), 120}}});
  if (!opened) return failed(opened.error().message.c_str());
  stay_on(core);
  for (int wait = 0; wait < 100 && !(*opened)->link_up(); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return (*opened)->link_up() ? *opened : failed("nobody is at the other end");
}

/// Prints the rate in millions a second, and stays for some time. So the script can first read the counters of the
/// serving side: some drivers forget them when the other end goes.
inline void tell(std::uint64_t count, double seconds) {
  std::printf("%.3f\n", static_cast<double>(count) / seconds / 1e6);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

/// Returns the flow of datagrams from `device`, from its first address and port 5000.
inline transport::ethernet::UdpFlow flow_to(transport::dpdk::Device& device, const char* ip, const char* port,
                                            const char* mac) {
  return {.from_mac = device.host().settings().mac,
          .to_mac = parse_mac(mac),
          .from = device.settings().addresses.front().address,
          .to = transport::ethernet::parse_ip(ip).value(),
          .from_port = 5000,
          .to_port = static_cast<std::uint16_t>(std::atoi(port))};
}

}  // namespace tributary::bench

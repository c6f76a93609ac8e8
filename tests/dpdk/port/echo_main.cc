// echo DEVICE ADDRESS/PREFIX PORT: answers every datagram with itself, until SIGTERM. Exits with 0 if every packet
// buffer came back.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "transport/dpdk/port.h"

namespace {

volatile std::sig_atomic_t over = 0;

int serve(const char* name, const char* address, std::uint16_t udp_port) {
  using namespace tributary::transport;
  auto eal = dpdk::Eal::start({.memory_bytes = 64U << 20U});
  if (!eal) {
    std::fprintf(stderr, "%s\n", eal.error().message.c_str());
    return 1;
  }
  dpdk::DeviceSettings settings{.device = name, .addresses = {ethernet::parse_prefix(address).value()}};
  auto device = dpdk::Device::open(*eal, settings);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  auto port = dpdk::DpdkPort::open(*device, {.udp_port = udp_port}).value();
  std::array<packet::ReceivedPacket, 64> into;
  while (over == 0) {
    for (const auto& packet : std::span(into).first(port->receive(into))) {
      static_cast<void>(port->send(packet.from, packet.bytes, {}));
    }
    port->flush();
  }
  port.reset();
  return (*device)->mbufs_in_use() == 0 ? 0 : 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 64;
  std::signal(SIGTERM, [](int) { over = 1; });
  return serve(arguments[1], arguments[2], static_cast<std::uint16_t>(std::atoi(arguments[3])));
}

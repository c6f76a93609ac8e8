// Several queues, each with a port and a UDP port of its own: a datagram reaches its port whichever queue it comes by.
#include <gtest/gtest.h>

#include "rings.h"

namespace tributary::transport::dpdk::test {
namespace {

TEST(Queues, HandOverWhatCameToTheWrongOne) {
  const auto names = wired_devices(2);
  auto settings = device_settings(names[0], "10.8.0.1/24", "fd08::1/64");
  settings.queues = 2;
  const auto server = Device::open(eal(), settings).value();
  settings = device_settings(names[1], "10.8.0.2/24", "fd08::2/64");
  settings.queues = 2;
  const auto client = Device::open(eal(), settings).value();
  std::array<std::unique_ptr<DpdkPort>, 2> servers;
  std::array<std::unique_ptr<DpdkPort>, 2> clients;
  for (std::uint16_t queue = 0; queue < 2; ++queue) {
    servers[queue] =
        DpdkPort::open(server, {.udp_port = static_cast<std::uint16_t>(7000 + queue), .queue = queue}).value();
    clients[queue] = DpdkPort::open(client, {.queue = queue}).value();
  }
  // Rings keep their queue: what client 0 sends comes to server 0, whatever its port.
  std::array<unsigned, 2> got{};
  const packet::PacketAddress to_other{ethernet::parse_ip("10.8.0.1").value(), 7001};
  const std::array<std::byte, 4> word{};
  for (unsigned sent = 0; sent < 20; ++sent) ASSERT_TRUE(clients[0]->send(to_other, word, {}));
  for (const auto end = Clock::now() + std::chrono::seconds(5); got[1] < 20 && Clock::now() < end;) {
    std::array<packet::ReceivedPacket, 64> into;
    for (std::size_t i = 0; i < 2; ++i) {
      static_cast<void>(clients[i]->receive(into));
      clients[i]->flush();
      got[i] += static_cast<unsigned>(servers[i]->receive(into));
    }
  }
  EXPECT_EQ(got[0], 0U);
  EXPECT_EQ(got[1], 20U);
  EXPECT_EQ(servers[0]->statistics().handed_over, 20U);
}

}  // namespace
}  // namespace tributary::transport::dpdk::test

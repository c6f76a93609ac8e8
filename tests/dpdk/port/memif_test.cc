// Two processes on one wire of shared memory, each with packet buffers of its own.
#include "tests/dpdk/port/memif_wire.h"

namespace tributary::transport::dpdk::test {
namespace {

TEST_F(Memif, CarriesDatagramsBetweenTwoProcessesThatEndClean) {
  ASSERT_NO_FATAL_FAILURE(connect(""));
  std::vector<std::byte> said(1024);
  unsigned answers = 0;
  for (const auto end = Clock::now() + 20s; answers < 1000 && Clock::now() < end;) {
    said[0] = static_cast<std::byte>(answers);
    for (int i = 0; i < 8; ++i) static_cast<void>(port->send(there, said, {}));
    port->flush();
    std::array<packet::ReceivedPacket, 64> into;
    for (const auto& packet : std::span(into).first(port->receive(into))) {
      EXPECT_TRUE(packet.bytes.size() == said.size() || packet.bytes.size() == 8);
      EXPECT_EQ(packet.from, there);
      ++answers;
    }
  }
  EXPECT_GE(answers, 1000U);
  EXPECT_GE(device->counters().received_packets, 1000U);
  port.reset();
  EXPECT_EQ(echo->end(), 0);
  std::filesystem::remove(socket);
  EXPECT_TRUE(std::filesystem::remove(folder)) << "a file was left in " << folder;
}

}  // namespace
}  // namespace tributary::transport::dpdk::test

// A device writes packets to the memory of a GPU, which the processor uses at another address. The GPU is simulated
// (fake_gpu.cc), and the device belongs to the kernel.
#include <gmock/gmock.h>

#include "tests/dpdk/port/far_socket.h"
#include "tests/dpdk/port/rings.h"
#include "transport/dpdk/gpu_memory.h"
#include "tributary/transport/dpdk.h"

namespace tributary::transport::dpdk::test {
namespace {

using packet::ReceivedPacket;
using ::testing::HasSubstr;

constexpr std::uint16_t kQueues = 2;

TEST(GpuMemory, IsOnTheNamedGpuOrTheStartFails) {
  const auto started = eal();
  const auto none = GpuMemory::allocate("0000:17:00.0", 1 << 20, nullptr);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("drives no GPU 0000:17:00.0 here; it drives 0000:65:00.0"));
}

TEST(GpuMemory, ADeviceThatIsNotOnAPciBusIsRefused) {
  const auto device =
      DpdkDevice::open({.device = "net_af_packet0,iface=lo", .addresses = {"10.6.0.1/24"}, .gpu = "0000:65:00.0"});
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("is no PCI device"));
}

// The port of one queue reads a packet that came by the other queue, in the memory of the other queue.
TEST(GpuMemory, EveryPortReadsItsPacketsFromEveryQueue) {
  const auto started = eal();
  std::string missing;
  const auto veth = Veth::make(missing);
  if (!veth) GTEST_SKIP() << missing;
  auto settings =
      device_settings(std::string("net_af_packet0,qpairs=2,iface=") + Veth::kNear, "10.6.0.1/24", "fd06::1/64");
  settings.queues = kQueues;
  settings.gpu = "0000:65:00.0";
  const auto device = Device::open(started, settings);
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_NE((*device)->seen_at(), 0);
  std::array<std::unique_ptr<DpdkPort>, kQueues> ports;
  for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
    ports[queue] =
        DpdkPort::open(*device, {.udp_port = static_cast<std::uint16_t>(7000 + queue), .queue = queue}).value();
  }
  unsigned sent = 0;
  unsigned shown = 0;
  for (std::uint16_t from = 5000; from < 5032; ++from) {  // the kernel spreads datagrams by their ports
    const FarSocket socket(*veth, AF_INET, SOCK_DGRAM, 0);
    ASSERT_TRUE(socket.bind("10.6.0.2", from));
    for (std::uint16_t queue = 0; queue < kQueues; ++queue, ++sent) {
      ASSERT_TRUE(socket.send("10.6.0.1", static_cast<std::uint16_t>(7000 + queue), pattern(1000, from)));
    }
    for (const TimePoint end = Clock::now() + std::chrono::seconds(5); shown < sent && Clock::now() < end;) {
      for (auto& port : ports) {
        std::array<ReceivedPacket, 8> into;
        const std::size_t count = port->receive(into);
        for (const ReceivedPacket& packet : std::span(into).first(count)) {
          ++shown;
          const auto expected = pattern(1000, packet.from.port);
          EXPECT_TRUE(std::ranges::equal(packet.bytes, expected)) << packet.from.port;
        }
        port->flush();
      }
    }
    ASSERT_EQ(shown, sent);
  }
  EXPECT_GT(ports[0]->statistics().handed_over + ports[1]->statistics().handed_over, 0U);
}

}  // namespace
}  // namespace tributary::transport::dpdk::test

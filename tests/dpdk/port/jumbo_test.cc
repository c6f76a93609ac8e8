// Links with an MTU of 9000, and with a longer MTU than any link has.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/dpdk/port/far_socket.h"
#include "tests/dpdk/port/rings.h"

namespace tributary::transport::dpdk::test {
namespace {

using packet::ReceivedPacket;
using ::testing::HasSubstr;

const std::string kDevice = std::string("net_af_packet0,iface=") + Veth::kNear;

class Jumbo : public ::testing::Test {
 protected:
  void SetUp() override {
    started_ = eal();
    std::string missing;
    veth_ = Veth::make(missing);
    if (!veth_) GTEST_SKIP() << missing;
    bool made = set_mtu(Veth::kNear);
    veth_->far([&] { made = made && set_mtu(Veth::kFar); });
    ASSERT_TRUE(made);
  }
  static bool set_mtu(const std::string& interface) {
    return std::system(("ip link set " + interface + " mtu 9000").c_str()) == 0;
  }
  static Result<std::shared_ptr<Device>> open(const std::string& device, std::uint32_t mtu = 0) {
    auto settings = device_settings(device, "10.6.0.1/24", "fd06::1/64");
    settings.mtu = mtu;
    return Device::open(eal(), settings);
  }

  std::shared_ptr<Eal> started_;
  std::unique_ptr<Veth> veth_;
};

TEST_F(Jumbo, TheInterfacesMtuIsUsedIfTheBuffersAreLongEnough) {
  const auto device = open(kDevice + ",framesz=12288,blocksz=12288");
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ((*device)->mtu(), 9000U);
  const auto port = DpdkPort::open(*device, {.udp_port = 7471}).value();
  const FarSocket socket(*veth_, AF_INET, SOCK_DGRAM, 0);
  ASSERT_TRUE(socket.bind("10.6.0.2", 5000));
  const auto said = pattern(9000 - 28, 1);
  EXPECT_EQ(port->datagram_bytes_max(at("10.6.0.2", 5000)), said.size());
  std::optional<std::vector<std::byte>> back;
  bool answered = false;
  ASSERT_TRUE(socket.send("10.6.0.1", 7471, said));
  for (const TimePoint end = Clock::now() + std::chrono::seconds(10); !back && Clock::now() < end;) {
    std::array<ReceivedPacket, 4> into;
    if (port->receive(into) > 0) {
      EXPECT_TRUE(std::ranges::equal(into[0].bytes, said));
      answered = port->send(into[0].from, into[0].bytes, {});
    }
    port->flush();
    back = socket.receive();
  }
  ASSERT_TRUE(answered && back) << "the long datagram did not come, or did not come back";
  EXPECT_EQ(*back, said);
}

TEST_F(Jumbo, AnMtuThatWouldCutPacketsIsRefusedWithAdvice) {
  const auto device = open(kDevice);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Errc::bad_config);
  EXPECT_THAT(device.error().message, HasSubstr("has buffers for an MTU of 1968: longer frames would be cut off"));
  EXPECT_THAT(device.error().message, HasSubstr("Add framesz=12288,blocksz=12288 to its name"));
  const auto longer = open(kDevice + ",framesz=16384,blocksz=16384", 9500);
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, HasSubstr("has an interface of MTU 9000, which does not carry one of 9500"));
  EXPECT_TRUE(open(kDevice, 1500)) << "all hosts on the link may agree on a smaller MTU";
}

TEST_F(Jumbo, AfXdpRefusesJumboFrames) {
  const auto device = open(std::string("net_af_xdp0,iface=") + Veth::kNear);
  ASSERT_FALSE(device);
  if (device.error().code != Errc::bad_config) GTEST_SKIP() << device.error().message;
  EXPECT_THAT(device.error().message, HasSubstr("and not 9000, as its interface has it"));
}

TEST(Mtu, IsNotAboveTheLengthOfABuffer) {
  const auto names = wired_devices();
  auto settings = device_settings(names[0], "10.8.0.1/24", "fd08::1/64");
  settings.mtu = 65327;
  const auto device = Device::open(eal(), settings);
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("takes an MTU of 1280 to 65326, and not 65327"));
}

}  // namespace
}  // namespace tributary::transport::dpdk::test

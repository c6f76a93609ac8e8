// Parties that flood one thread over real UDP are read in proportion to their weights, whatever the number of their
// connections.
#include <unistd.h>

#include <fstream>

#include "tests/unit/transport/busy_shares.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kBufferBytes = 8U << 20;
constexpr std::uint64_t kBytes = 16U << 20;

class UdpShares : public ::testing::Test {
 protected:
  void SetUp() override {
    std::size_t most = 0;
    std::ifstream("/proc/sys/net/core/rmem_max") >> most;
    if (::geteuid() != 0 && most < kBufferBytes) GTEST_SKIP() << "net.core.rmem_max is " << most;
  }
  static std::unique_ptr<Transport> transport() {
    UdpSettings settings;
    settings.receive_buffer_bytes = kBufferBytes;
    settings.window_bytes = 64U << 10;  // all connections' windows fit into the socket's buffer
    settings.delay_target = std::chrono::milliseconds(100);
    settings.bind_address = "127.0.0.1";
    return std::make_unique<UdpTransport>(settings);
  }
  BusyShares shares_{transport(), "127.0.0.1", {}};
};

TEST_F(UdpShares, WithoutSharesAFloodOfManyConnectionsTakesMost) {
  shares_.flood(transport(), 0, 24);
  shares_.flood(transport(), 0, 6);
  EXPECT_GT(shares_.ratio(kBytes), 2.5);
}

TEST_F(UdpShares, AFloodOfManyConnectionsIsReadNoMoreThanItsShare) {
  shares_.flood(transport(), 1, 24);
  shares_.flood(transport(), 1, 6);
  const double ratio = shares_.ratio(kBytes);
  EXPECT_GT(ratio, 0.75);
  EXPECT_LT(ratio, 1.35);
  EXPECT_GT(shares_.waits(0), 0U);
  EXPECT_GT(shares_.waits(1), 0U) << "the thread is what both share";
}

TEST_F(UdpShares, PartiesAreReadInProportionToTheirWeights) {
  shares_.flood(transport(), 8, 16);
  shares_.flood(transport(), 1, 16);
  const double ratio = shares_.ratio(kBytes);
  EXPECT_GT(ratio, 6.4);
  EXPECT_LT(ratio, 10);
}

}  // namespace
}  // namespace tributary::transport::test

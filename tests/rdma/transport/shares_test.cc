// Parties that flood one thread over RDMA are read in proportion to their weights, whatever the number of their
// connections, and whatever the way of their payloads.
#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/busy_shares.h"

namespace tributary::transport::test {
namespace {

constexpr std::uint64_t kBytes = 8U << 20;

class VerbsShares : public ::testing::Test {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
  }
  static std::unique_ptr<Transport> client() {
    return VerbsTransport::create({.bind_address = rdma_hosts().back()}).value();
  }
  static std::unique_ptr<BusyShares> busy(const BusyShares::Settings& settings = {}) {
    return std::make_unique<BusyShares>(VerbsTransport::create({.bind_address = rdma_hosts().front()}).value(),
                                        rdma_hosts().front(), settings);
  }
};

TEST_F(VerbsShares, WithoutSharesManyConnectionsTakeMost) {
  const auto shares = busy();
  shares->flood(client(), 0, 16);
  shares->flood(client(), 0, 4);
  EXPECT_GT(shares->ratio(kBytes), 2.5);
}

TEST_F(VerbsShares, ManyConnectionsAreReadNoMoreThanTheirShare) {
  const auto shares = busy();
  shares->flood(client(), 1, 16);
  shares->flood(client(), 1, 4);
  const double ratio = shares->ratio(kBytes);
  EXPECT_GT(ratio, 0.7);
  EXPECT_LT(ratio, 1.4);
  EXPECT_GT(shares->waits(0), 0U);
  EXPECT_GT(shares->waits(1), 0U) << "the thread is what both share";
}

TEST_F(VerbsShares, PartiesAreReadInProportionToTheirWeights) {
  const auto shares = busy();
  shares->flood(client(), 1, 8);
  shares->flood(client(), 4, 8);
  const double ratio = shares->ratio(kBytes);
  EXPECT_GT(ratio, 0.18);
  EXPECT_LT(ratio, 0.33);
}

TEST_F(VerbsShares, LargePayloadsThatLandInRoomAreSharedToo) {
  const auto shares =
      busy({.payload_bytes = 64U << 10, .time_of_frame = std::chrono::milliseconds(4), .window = 8, .room = true});
  shares->flood(client(), 1, 8);
  shares->flood(client(), 1, 1);
  const double ratio = shares->ratio(kBytes);
  EXPECT_GT(ratio, 0.7);
  EXPECT_LT(ratio, 1.4);
}

}  // namespace
}  // namespace tributary::transport::test

#include "transport/ethernet/path_mtu.h"

#include <gtest/gtest.h>

#include "tests/unit/ethernet/frames.h"

namespace tributary::transport::ethernet::test {
namespace {

using namespace std::chrono_literals;

TEST(PathMtu, IsTheLinksMtuUntilARouterReportsLessAndAgainAfterAWhile) {
  PathMtu paths;
  const TimePoint start{1h};
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 9000, start), 9000U);
  paths.told(ip("10.9.0.1"), 1400, start);
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 9000, start), 1400U);
  EXPECT_EQ(paths.get(ip("10.9.0.2"), 9000, start), 9000U);
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 1200, start), 1200U);
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 9000, start + 11min), 9000U);
}

TEST(PathMtu, IsNeverTooSmallForTheProtocol) {
  PathMtu paths;
  const TimePoint now{1h};
  // The length of the packet protocol's shortest full datagram.
  const std::size_t datagram = 1232;
  for (const std::uint32_t said : {0U, 68U, 552U, 576U, 1259U}) {
    EXPECT_FALSE(paths.told(ip("10.9.0.1"), said, now));
    EXPECT_FALSE(paths.told(ip("fd09::1"), said, now));
  }
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 1500, now), 1500U);
  EXPECT_EQ(paths.get(ip("fd09::1"), 1500, now), 1500U);
  EXPECT_TRUE(paths.told(ip("10.9.0.1"), 1260, now));
  EXPECT_TRUE(paths.told(ip("fd09::1"), 1280, now));
  EXPECT_EQ(paths.get(ip("10.9.0.1"), 1500, now), datagram + 28);
  EXPECT_EQ(paths.get(ip("fd09::1"), 1500, now), datagram + 48);
}

TEST(PathMtu, ForgetsTheOldestReportWhenThereAreTooMany) {
  PathMtu paths;
  for (std::uint8_t i = 0; i < 65; ++i) paths.told(mapped({10, 9, 0, i}), 1300, TimePoint{1h + i * 1s});
  EXPECT_EQ(paths.get(mapped({10, 9, 0, 0}), 1500, TimePoint{1h + 66s}), 1500U);
  EXPECT_EQ(paths.get(mapped({10, 9, 0, 1}), 1500, TimePoint{1h + 66s}), 1300U);
  EXPECT_EQ(paths.get(mapped({10, 9, 0, 64}), 1500, TimePoint{1h + 66s}), 1300U);
}

}  // namespace
}  // namespace tributary::transport::ethernet::test

// The rate of an interface, from real drivers of the kernel in a network of the test's own.
#include "tributary/transport/link_rate.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <functional>
#include <thread>

namespace tributary::transport {
namespace {

/// Runs a function on a thread with a network of its own. It has a pair of veth interfaces, and a macvlan above one of
/// them, whose driver reports the veth's 10 Gbit/s. Returns false if the process may not do this.
bool between_interfaces(const std::function<void()>& run) {
  bool permitted = false;
  std::thread thread([&] {
    permitted = ::unshare(CLONE_NEWNET) == 0 &&
                std::system(
                    "ip link add near type veth peer name far && "
                    "ip link add above link near type macvlan && "
                    "ip address add 10.77.0.1/24 dev near && ip address add 10.78.0.1/24 dev above && "
                    "ip -6 address add fd00::78/64 dev above nodad && "
                    "ip link set lo up && ip link set near up && ip link set far up && "
                    "ip link set above up") == 0;
    if (permitted) run();
  });
  thread.join();
  return permitted;
}

TEST(LinkRate, IsTheRateThatTheInterfacesDriverReports) {
  const bool permitted = between_interfaces([] {
    EXPECT_EQ(link_rate_of("10.78.0.1"), 10'000'000'000U);
    EXPECT_EQ(link_rate_of("fd00::78"), 10'000'000'000U);
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

TEST(LinkRate, IsUnknownForAnInterfaceWithoutAWire) {
  const bool permitted = between_interfaces([] {
    EXPECT_EQ(link_rate_of("10.77.0.1"), 0U) << "veth's rate is a constant, so it does not count";
    EXPECT_EQ(link_rate_of("127.0.0.1"), 0U);
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

TEST(LinkRate, IsUnknownForAnAddressThatNoInterfaceHas) {
  EXPECT_EQ(link_rate_of("192.0.2.1"), 0U);
  EXPECT_EQ(link_rate_of("a name"), 0U);
  EXPECT_EQ(link_rate_of(""), 0U);
}

}  // namespace
}  // namespace tributary::transport

// The limits of a communicator's host level, when its own process stands still.
#include "client/communicator/host_level.h"

#include <gtest/gtest.h>

#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

/// Rank 0 in a group of two hosts with one rank each; the leader of the other host never comes.
class LonelyLeader : public testing::Test {
 protected:
  LonelyLeader() {
    EXPECT_TRUE(level_.open());
    level_.start({"rank0", 7000}, [](const Status&) {});
  }
  static inline const std::vector<std::string> kHosts{"one", "other"};
  static HostLevel::Parts parts(transport::SimNetwork& network) {
    CommunicatorSettings settings;
    settings.nranks = 2;
    settings.id.root = {"rank0", 7000};
    settings.listen = {"rank0", 0};
    settings.timeout = 20s;
    return {.transport = network.transport("rank0"),
            .service = nullptr,
            .settings = settings,
            .map = hosts::find_hosts(kHosts, kHosts),
            .done = [](Operation&) {},
            .path_changed = {}};
  }

  transport::SimNetwork network_;
  HostLevel level_{parts(network_)};
};

TEST_F(LonelyLeader, IsNotLateForTimeInWhichItsOwnProcessStoodStill) {
  const auto limit = network_.now() + 2 * 4s + 1s;
  EXPECT_FALSE(level_.late(limit - 1ms));
  EXPECT_TRUE(level_.late(limit));
  level_.excuse(30s);
  EXPECT_FALSE(level_.late(limit + 30s - 1ms));
  EXPECT_TRUE(level_.late(limit + 30s));
}

TEST_F(LonelyLeader, TheTimeForWhichItStoodStillDoesNotShortenItsWaitForTheOthers) {
  bool left = false;
  level_.finalize([&] { left = true; });
  level_.excuse(30s);
  level_.tick(network_.now() + 30s);
  EXPECT_FALSE(left);
  level_.tick(network_.now() + 31s);
  EXPECT_TRUE(left);
}

}  // namespace
}  // namespace tributary::client

// SIGTERM: the aggregator tells the manager, groups move to their fallback, and the process ends in time.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DaemonDrain : public DaemonTest {};

TEST_F(DaemonDrain, SigtermTellsManagerAndChildrenAndEndsWith0) {
  DaemonProcess& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  root.process.signal(SIGTERM);
  ASSERT_TRUE(run_until([&] { return ranks[0]->failed && ranks[1]->failed; }));
  EXPECT_THAT(*ranks[0]->failed, HasSubstr("aggregator root drains: it shuts down"));
  EXPECT_TRUE(run_until([&] { return !root.process.running(); })) << root.process.output();
  EXPECT_EQ(root.process.wait(std::chrono::seconds(0)), 0);
  EXPECT_THAT(manager_.unregistered(), ElementsAre("root"));
}

TEST_F(DaemonDrain, WithoutChildrenOrManagerItEndsAtOnce) {
  DaemonProcess& root = aggregator("root");
  manager_.stop();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(root.terminate(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(DaemonDrain, AChildThatDoesNotReadIsWaitedForNoLongerThanTheLimit) {
  const std::string file = folder_.write("a.yaml", "drain_limit: 2s\nflush_limit: 1min\n");
  DaemonProcess& root = aggregator("root", {"--config", file});
  const auto ranks = lane_of(root, 2);
  const auto begin = std::chrono::steady_clock::now();
  // The ranks cannot answer during this call: this thread, which polls their transport, waits here.
  EXPECT_EQ(root.terminate(), 0) << root.process.output();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(1500));
  EXPECT_LT(took, std::chrono::seconds(10));
  EXPECT_THAT(root.process.output(), HasSubstr("did not read the reason within 2s"));
}

TEST_F(DaemonDrain, ASecondSignalEndsAtOnce) {
  const std::string file = folder_.write("a.yaml", "drain_limit: 5min\nflush_limit: 5min\n");
  DaemonProcess& root = aggregator("root", {"--config", file});
  const auto ranks = lane_of(root, 2);
  root.process.signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return root.process.output().contains("draining; a second signal ends the process"); }));
  root.process.signal(SIGINT);
  EXPECT_EQ(root.process.wait(std::chrono::seconds(10)), 1);
  EXPECT_THAT(root.process.output(), HasSubstr("a second signal: the process ends at once"));
}

TEST_F(DaemonDrain, TellsNewChildrenThatItDrains) {
  const std::string file = folder_.write("a.yaml", "drain_limit: 5min\nflush_limit: 5min\n");
  DaemonProcess& root = aggregator("root", {"--config", file});
  // A child that never reads the last frames delays the end of the drain: here a rank that a signal has stopped.
  ++epoch_;
  const auto stopped = rank_process(root, 0, 2);
  Child& rank = child(root.endpoint(), join_of({claims_of("root", 1, 2)}));
  ASSERT_TRUE(run_until([&] { return rank.ready; }));
  stopped->signal(SIGSTOP);
  root.process.signal(SIGTERM);
  ASSERT_TRUE(run_until([&] { return rank.failed.has_value(); }));
  EXPECT_EQ(root.health().at("status"), "draining");
  ++epoch_;
  Child& newcomer = child(root.endpoint(), join_of({claims_of("root", 0, 1)}));
  EXPECT_TRUE(run_until([&] { return newcomer.refused.has_value(); }));
  EXPECT_THAT(newcomer.refused.value_or(""), HasSubstr("takes no new lanes: it shuts down"));
  stopped->signal(SIGKILL);
  EXPECT_EQ(root.process.wait(std::chrono::seconds(10)), 0);
}

}  // namespace
}  // namespace tributary::aggregator::test

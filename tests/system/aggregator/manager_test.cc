// An aggregator and its manager: the manager is absent, late, restarted without its store, or replaced, or it drains
// the aggregator.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"
#include "tributary/transport/udp.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class DaemonAndManager : public DaemonTest {
 protected:
  DaemonProcess& start(const std::string& name, std::vector<std::string> more = {}) {
    auto arguments = arguments_of(name);
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto& daemon = daemons_[name];
    daemon.reset();
    daemon = std::make_unique<DaemonProcess>(folder_, name, arguments);
    return *daemon;
  }
  std::string refusal(const DaemonProcess& daemon) {
    ++epoch_;
    Child& rank = child(daemon.endpoint(), join_of({claims_of(daemon.name, 0, 1)}));
    EXPECT_TRUE(run_until([&] { return rank.ready || rank.closed.has_value(); }));
    return rank.refused.value_or(rank.ready ? "(let in)" : "(closed)");
  }
};

TEST_F(DaemonAndManager, StartsWithoutAManagerRefusesJoinsAndRegistersOnceThereIsOne) {
  manager_.stop();
  DaemonProcess& daemon = start("early");
  EXPECT_THAT(refusal(daemon), HasSubstr("has not reached its manager yet"));
  EXPECT_TRUE(eventually([&] { return daemon.process.output().contains("cannot be reached"); }))
      << daemon.process.output();
  EXPECT_TRUE(eventually([&] { return daemon.metric("manager_failures_total") > 0; }));
  manager_.start();
  EXPECT_TRUE(eventually([&] { return daemon.takes_joins(); }));
  expect_serves(daemon);
}

TEST_F(DaemonAndManager, AJoinThatComesBeforeTheManagersKeyWaitsForIt) {
  manager_.stop();
  DaemonProcess& daemon = start("just-registered");
  Child& rank = child(daemon.endpoint(), join_of({claims_of(daemon.name, 0, 1)}));
  EXPECT_TRUE(eventually([&] { return daemon.metric("manager_failures_total") > 0; }));
  manager_.start();
  EXPECT_TRUE(run_until([&] { return rank.ready || rank.closed.has_value(); }));
  EXPECT_TRUE(rank.ready) << rank.refused.value_or("it was closed");
}

TEST_F(DaemonAndManager, AJoinOverUdpThatComesBeforeTheManagersKeyWaitsForIt) {
  manager_.stop();
  DaemonProcess& daemon = start("just-registered-udp", {"--config", folder_.write("udp.yaml", "transport: udp\n")});
  transport::UdpTransport udp{{}};
  Child rank(udp, daemon.endpoint(), join_of({claims_of(daemon.name, 0, 1)}), epoch_);
  const auto polled = [&](const auto& done) {
    return [&udp, done] {
      udp.poll(std::chrono::milliseconds(1));
      return done();
    };
  };
  EXPECT_TRUE(run_until(polled([&] { return daemon.metric("manager_failures_total") > 0; })));
  EXPECT_FALSE(rank.ready || rank.closed);
  manager_.start();
  EXPECT_TRUE(run_until(polled([&] { return rank.ready || rank.closed.has_value(); })));
  EXPECT_TRUE(rank.ready) << rank.refused.value_or("it was closed");
}

TEST_F(DaemonAndManager, KeepsTheKeySoThatARestartWithoutAManagerStillLetsRanksIn) {
  const std::string state = folder_.file("manager-key");
  DaemonProcess& before = start("keeps", {"--state-file", state});
  ASSERT_TRUE(eventually([&] { return before.takes_joins(); }));
  before.process.signal(SIGKILL);
  manager_.stop();
  DaemonProcess& after = start("keeps", {"--state-file", state});
  EXPECT_TRUE(after.takes_joins());
  expect_serves(after);
}

TEST_F(DaemonAndManager, ServesOnWhileTheManagerIsDown) {
  DaemonProcess& daemon = aggregator("serves");
  const auto ranks = lane_of(daemon, 2);
  manager_.stop();
  EXPECT_TRUE(eventually([&] { return !daemon.health().at("manager").at("error").get<std::string>().empty(); }));
  for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  EXPECT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
  expect_serves(daemon);
  manager_.start();
  EXPECT_TRUE(eventually([&] { return daemon.health().at("manager").at("error").get<std::string>().empty(); }));
}

TEST_F(DaemonAndManager, RenewsItsLeaseSeveralTimesWithinIt) {
  aggregator("renews");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return manager_.renewals() >= 4; }));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took, std::chrono::seconds(4)) << "the aggregator renews a lease of one second three times a second";
  EXPECT_EQ(manager_.registrations(), 1U);
}

TEST_F(DaemonAndManager, RegistersAgainWhenTheManagerHasForgottenIt) {
  DaemonProcess& daemon = aggregator("forgotten");
  const auto ranks = lane_of(daemon, 2);
  manager_.forget_registrations();
  EXPECT_TRUE(eventually([&] { return manager_.registrations() == 2; }));
  EXPECT_TRUE(eventually([&] { return daemon.health().at("manager").at("incarnation") == 2; }));
  EXPECT_FALSE(ranks[0]->closed.has_value()) << "running lanes do not notice";
}

TEST_F(DaemonAndManager, TwoAggregatorsWithOneNameReportItAndDoNotFightWithoutEnd) {
  DaemonProcess& first = aggregator("twin");
  const DaemonProcess second(folder_, "twin", arguments_of("twin"));
  EXPECT_TRUE(eventually([&] {
    return (first.process.output() + second.process.output()).contains("does another aggregator use this name?");
  }));
  EXPECT_LE(manager_.registrations(), 8U);
}

TEST_F(DaemonAndManager, ANewKeyHoldsForNewJoinsAndLanesInUseGoOn) {
  DaemonProcess& daemon = aggregator("adopted");
  const auto ranks = lane_of(daemon, 2);
  const Bytes old_join = join_of({claims_of("adopted", 0, 1)});
  manager_.replace();
  EXPECT_TRUE(eventually([&] { return daemon.process.output().contains("has another key than before"); }));
  Child& late = child(daemon.endpoint(), old_join);
  EXPECT_TRUE(run_until([&] { return late.refused.has_value(); }));
  EXPECT_THAT(late.refused.value_or(""), HasSubstr("not signed by this cluster's manager"));
  for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  EXPECT_TRUE(run_until([&] { return ranks[0]->results.size() == 1; }));
  expect_serves(daemon);
}

TEST_F(DaemonAndManager, AWrongTokenIsToldAndReadAgainUntilItIsRight) {
  manager_.want_token("right");
  const std::string token = folder_.write("token", "wrong\n");
  DaemonProcess& daemon = start("shut-out", {"--token-file", token});
  EXPECT_TRUE(eventually([&] { return daemon.process.output().contains("copy the manager's token file"); }))
      << daemon.process.output();
  folder_.write("token", "right\n");
  EXPECT_TRUE(eventually([&] { return daemon.takes_joins(); })) << daemon.process.output();
}

TEST_F(DaemonAndManager, DrainingGivesGroupsTheirGraceThenEndsTheirLanesAndCanBeRevoked) {
  const std::string file = folder_.write("a.yaml", "drain_grace: 1s\n");
  DaemonProcess& daemon = aggregator("drained", {"--config", file});
  const auto ranks = lane_of(daemon, 2);
  manager_.set_draining(true);
  EXPECT_TRUE(eventually([&] { return daemon.health().at("status") == "draining"; }));
  EXPECT_FALSE(ranks[0]->failed.has_value()) << "groups may use the grace period";
  EXPECT_THAT(refusal(daemon), HasSubstr("takes no new lanes: the manager drains it"));
  EXPECT_TRUE(run_until([&] { return ranks[0]->failed && ranks[1]->failed; }));
  EXPECT_THAT(ranks[0]->failed.value_or(""), HasSubstr("the manager drains it"));
  EXPECT_TRUE(daemon.process.running());
  EXPECT_TRUE(manager_.unregistered().empty())
      << "the aggregator goes on renewing, so that the administrator sees when it has no lanes";

  manager_.set_draining(false);
  EXPECT_TRUE(eventually([&] { return daemon.takes_joins(); }));
  expect_serves(daemon);
}

}  // namespace
}  // namespace tributary::aggregator::test

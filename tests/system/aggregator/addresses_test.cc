// An aggregator that listens at several addresses.
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class DaemonAtSeveralAddresses : public DaemonTest {
 protected:
  DaemonProcess& listens_at(const std::string& list) {
    daemons_["two"] =
        std::make_unique<DaemonProcess>(folder_, "two",
                                        std::vector<std::string>{"--manager", manager_.url(), "--listen", list,
                                                                 "--http", "127.0.0.1:0", "--workers", "2"});
    EXPECT_TRUE(eventually([&] { return daemons_["two"]->takes_joins(); })) << daemons_["two"]->process.output();
    return *daemons_["two"];
  }
  std::vector<Endpoint> registered() const {
    const json registration = manager_.registration_of("two");
    std::vector<Endpoint> list{*parse_endpoint(registration.at("data").get<std::string>())};
    for (const json& more : registration.value("data_more", json::array()))
      list.push_back(*parse_endpoint(more.get<std::string>()));
    return list;
  }
  /// Sums over one lane whose children each connect to another address: all children must get into the same lane.
  void expect_sum(const DaemonProcess& daemon, const std::vector<Endpoint>& by) {
    ++epoch_;
    std::vector<Child*> ranks;
    const auto count = static_cast<std::uint16_t>(by.size());
    std::vector<std::vector<float>> inputs;
    for (std::uint16_t i = 0; i < count; ++i)
      ranks.push_back(&child(by[i], join_of({claims_of(daemon.name, i, count)})));
    ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, &Child::ready); }));
    for (std::uint16_t i = 0; i < count; ++i) {
      inputs.push_back(floats(i, 16));
      ranks[i]->contribute(0, kSum, bytes_of(inputs.back()));
    }
    ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 1; }); }));
    for (Child* rank : ranks) EXPECT_EQ(rank->results[0].payload, bytes_of(sum_of(inputs)));
    for (Child* rank : ranks) rank->leave();
    EXPECT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->closed.has_value(); }); }));
  }
};

TEST_F(DaemonAtSeveralAddresses, RegistersThemAllAndServesOneLaneOverEach) {
  DaemonProcess& daemon = listens_at("127.0.0.1:0,127.0.0.2:0");
  const auto places = registered();
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0], daemon.endpoint());
  EXPECT_EQ(places[1].host, "127.0.0.2");
  expect_sum(daemon, {places[0], places[0]});
  expect_sum(daemon, {places[1], places[1], places[1]});
  expect_sum(daemon, {places[0], places[1]});
  EXPECT_EQ(daemon.health().at("listen").size(), 2U);
  EXPECT_EQ(daemon.metric("listen_live"), 2);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(DaemonAtSeveralAddresses, OneAddressIsRegisteredAsInOlderVersions) {
  listens_at("127.0.0.1:0");
  EXPECT_FALSE(manager_.registration_of("two").contains("data_more")) << "an older manager does not know this member";
  EXPECT_FALSE(manager_.registration_of("two").contains("data_down"));
}

TEST_F(DaemonAtSeveralAddresses, TellsRanksOtherNamesThanThoseItListensAt) {
  std::ofstream(folder_.file("names.yaml")) << "advertise: [rail-0.example, rail-1.example]\n"
                                               "listen: [127.0.0.1:0, '127.0.0.2:0']\nhttp_listen: 127.0.0.1:0\n";
  DaemonProcess daemon(folder_, "two", {"--manager", manager_.url(), "--config", folder_.file("names.yaml")});
  ASSERT_TRUE(eventually([&] { return daemon.takes_joins(); })) << daemon.process.output();
  EXPECT_EQ(registered()[0].host, "rail-0.example");
  EXPECT_EQ(registered()[1].host, "rail-1.example");
  EXPECT_THAT(manager_.registration_of("two").at("http").get<std::string>(), HasSubstr("rail-0.example:"));
}

/// Runs in a network namespace of its own, where the test may take addresses away.
class DaemonWhoseAddressGoes : public DaemonAtSeveralAddresses {
 protected:
  static void SetUpTestSuite() {
    const int wanted = ::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    if (::unshare(wanted) != 0) return;
    ready_ = run("ip link set lo up") && run("ip address add 10.77.0.1/32 dev lo") && set_second(true);
  }
  void SetUp() override {
    if (!ready_) GTEST_SKIP() << "no network namespace can be made here, or there is no ip command";
  }
  static bool run(const std::string& command) {
    return std::system(("PATH=$PATH:/sbin:/usr/sbin " + command).c_str()) == 0;
  }
  static bool set_second(bool there) {
    return run(std::string("ip address ") + (there ? "add" : "del") + " 10.77.0.2/32 dev lo");
  }
  inline static bool ready_ = false;
};

TEST_F(DaemonWhoseAddressGoes, ReportsTheLossAndTheReturnToTheManager) {
  // The lease is long, so that the aggregator sends no message because of a due renewal.
  manager_.set_lease_seconds(3600);
  DaemonProcess& daemon = listens_at("10.77.0.1:7471,10.77.0.2:7471");
  const auto places = registered();
  expect_sum(daemon, {places[0], places[1]});
  ASSERT_TRUE(set_second(false));
  ASSERT_TRUE(eventually([&] { return manager_.last_down_of("two") == json{1}; })) << daemon.process.output();
  EXPECT_EQ(daemon.metric("listen_live"), 1);
  expect_sum(daemon, {places[0], places[0]});
  ASSERT_TRUE(set_second(true));
  ASSERT_TRUE(eventually([&] { return manager_.last_down_of("two").is_null(); })) << daemon.process.output();
  expect_sum(daemon, {places[0], places[1]});
  EXPECT_EQ(manager_.renewals(), 2U);
}

TEST_F(DaemonWhoseAddressGoes, StartsWithoutItAndTakesItLater) {
  ASSERT_TRUE(set_second(false));
  DaemonProcess& daemon = listens_at("10.77.0.1:7471,10.77.0.2:7471");
  EXPECT_EQ(manager_.registration_of("two").at("data_down"), json{1});
  EXPECT_THAT(daemon.process.output(), HasSubstr("10.77.0.2:7471"));
  ASSERT_TRUE(set_second(true));
  ASSERT_TRUE(eventually([&] { return daemon.metric("listen_live") == 2; })) << daemon.process.output();
  const auto places = registered();
  expect_sum(daemon, {places[1], places[1]});
}

}  // namespace
}  // namespace tributary::aggregator::test

// Aggregators listen at two addresses each: every lane uses its own address, for connections of ranks and of
// aggregators. Over RDMA an address is a device (the test runs in a virtual machine, where it may change devices). The
// test counts the traffic of each device, and removes one device while the ranks work. The ranks go on, and return to
// their trees over the other device.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/system/chaos/watched_cluster.h"

namespace tributary::chaos {
namespace {

using nlohmann::json;

bool is_ours() {
  return std::getenv("RDMA_VIRTUAL") != nullptr;
}
bool run(const std::string& command) {
  return std::system(("PATH=$PATH:/sbin:/usr/sbin " + command).c_str()) == 0;
}

class TwoAddresses : public WatchedCluster {
 protected:
  void start(const cli::ClusterShape& shape) {
    // On a busy machine a virtual machine stands still for longer than RDMA waits. If a tree is lost for this reason,
    // do not avoid its aggregator for long.
    cluster_ = workshop_.start_cluster(shape, 2, 2, "failed_exclusion: 2s\n");
    cli::Environment environment{{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOG", "debug"}, {"TRIBUTARY_LOCAL", "off"}};
    if (is_ours()) environment["TRIBUTARY_RDMA_DEVICES"] = "rxe2,rxe3";  // the two devices of the ranks
    ASSERT_NO_FATAL_FAILURE(start_ranks("7", environment));
    until([this] { return rounds() >= 1 && fleet_->all_in_network(); }, "no group moves to its tree");
  }
  /// The addresses of the aggregator, in the form "host:port".
  std::vector<std::string> addresses_of(const std::string& name) const {
    std::vector<std::string> list;
    const json aggregator = ask("/v1/aggregators/" + name);
    for (const json& one : aggregator.at("addresses")) list.push_back(one.at("at"));
    return list;
  }
  std::vector<bool> live(const std::string& name) const {
    std::vector<bool> list;
    const json aggregator = ask("/v1/aggregators/" + name);
    for (const json& one : aggregator.at("addresses")) list.push_back(one.at("live"));
    return list;
  }
  /// Counts the trees that groups left: trees that they lost, and trees that they replaced by the manager's advice
  /// before they were lost.
  std::uint64_t left() const { return sum(&GroupReport::failovers) + sum(&GroupReport::returns); }
  /// Returns whether every tree of the manager uses this address.
  bool all_at(const std::string& address) const {
    std::size_t there = 0, nodes = 0;
    each_node([&](std::size_t, const json& node) {
      ++nodes;
      there += node.at("data") == address ? 1U : 0U;
    });
    return nodes > 0 && there == nodes;
  }
  static std::uint64_t packets_to(const std::string& device) {
    std::ifstream in("/sys/class/infiniband/" + device + "/ports/1/hw_counters/rcvd_pkts");
    std::uint64_t count = 0;
    in >> count;
    return count;
  }
  /// Removes the device of agg-0's second address during operations, by calling `away`.
  void lose_second(const std::string& away) {
    start({.ranks = kRanks, .aggregators = 1, .levels = 1});
    const std::string name = cluster_->name_of(0);
    until([&] { return rounds() >= 2; }, "the ranks do nothing");
    const std::uint64_t before = left();
    ASSERT_TRUE(run(away));
    until([&] { return left() > before; }, "no group leaves the address that is gone");
    until([&] { return live(name) == std::vector{true, false}; }, "the manager is not told");
    const auto first = addresses_of(name).front();
    until([&] { return all_at(first) && fleet_->all_in_network(); },
          "not every group is on a tree by the other address");
    const std::uint64_t then = rounds();
    until([&] { return rounds() >= then + 3 && fleet_->all_in_network(); }, "the ranks do not stay there");
  }
};

TEST_F(TwoAddresses, EveryLaneUsesAnAddressOfItsOwnUpToTheRoot) {
  const std::uint64_t first = packets_to("rxe0"), second = packets_to("rxe1");
  start({.ranks = kRanks, .aggregators = 3, .levels = 2});
  std::set<std::size_t> lanes;
  if (!HasFatalFailure()) {
    each_node([&](std::size_t lane, const json& node) {
      lanes.insert(lane);
      EXPECT_EQ(node.at("data"), addresses_of(node.at("aggregator")).at(lane % 2)) << node.dump();
    });
    EXPECT_EQ(lanes.size(), 2U);
  }
  constexpr std::uint64_t kMany = 200;  // connecting takes fewer packets
  const auto by_both = [&] {
    return !is_ours() || (packets_to("rxe0") > first + kMany && packets_to("rxe1") > second + kMany);
  };
  until([&] { return rounds() >= 3 && by_both(); }, "the ranks do nothing, or use only one device");
  if (is_ours()) {
    std::printf("packets: %llu by rxe0, %llu by rxe1\n", static_cast<unsigned long long>(packets_to("rxe0") - first),
                static_cast<unsigned long long>(packets_to("rxe1") - second));
  }
  end();
}

TEST_F(TwoAddresses, APortThatGoesDownCostsAPauseAndComesBack) {
  if (!is_ours()) GTEST_SKIP() << "this machine's devices are not ours to take away";
  lose_second("ip link set port1 down");
  if (!HasFatalFailure()) {
    ASSERT_TRUE(run("ip link set port1 up"));
    until([&] { return live(cluster_->name_of(0)) == std::vector{true, true}; }, "it does not come back");
  }
  end();
}

TEST_F(TwoAddresses, ADeviceThatIsDeletedCostsAPause) {
  if (!is_ours()) GTEST_SKIP() << "this machine's devices are not ours to take away";
  // The command returns when all processes that have opened the device have ended.
  lose_second("rdma link delete rxe1 >/dev/null 2>&1 &");
  end();
}

}  // namespace
}  // namespace tributary::chaos

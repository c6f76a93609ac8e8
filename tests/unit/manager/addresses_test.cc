// Aggregators with an address for each of their devices: a lane uses one of them, and groups move when one goes and
// comes back.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/unit/manager/cluster_fixture.h"
#include "tests/unit/manager/fabrics.h"
#include "tree-manager/service/credentials.h"
#include "tree-manager/store/records.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Endpoint rail(int which, int aggregator = 1) {
  return {"10." + std::to_string(which) + ".0." + std::to_string(aggregator), 7471};
}

/// Returns an address for each letter: l is live, d is down.
DataAddresses addresses(const std::string& states, int aggregator = 1) {
  DataAddresses list;
  for (const char state : states)
    list.push_back({.at = rail(static_cast<int>(list.size()), aggregator), .live = state == 'l'});
  return list;
}

TEST(Addresses, ALaneKeepsItsAddressWhenOthersComeAndGo) {
  for (const auto& [states, wanted] : std::map<std::string, std::vector<int>>{{"l", {0, 0, 0, 0, 0}},
                                                                              {"ll", {0, 1, 0, 1, 0}},
                                                                              {"lll", {0, 1, 2, 0, 1}},
                                                                              {"dll", {1, 1, 2, 1, 1}},
                                                                              {"ldl", {0, 2, 2, 0, 2}},
                                                                              {"lld", {0, 1, 0, 0, 1}},
                                                                              {"ldd", {0, 0, 0, 0, 0}},
                                                                              {"dl", {1, 1, 1, 1, 1}}}) {
    const DataAddresses list = addresses(states);
    for (std::uint32_t lane = 0; lane < wanted.size(); ++lane) {
      ASSERT_NE(address_for_lane(list, lane), nullptr) << states;
      EXPECT_EQ(*address_for_lane(list, lane), rail(wanted[lane])) << states << " lane " << lane;
    }
  }
  EXPECT_EQ(address_for_lane(addresses("dd"), 1), nullptr);
  EXPECT_EQ(address_for_lane({}, 0), nullptr);
}

TEST(Addresses, AChildAndItsParentMeetOnARailThatBothHave) {
  const auto between = [](const std::string& child, const std::string& parent, std::uint32_t lane) {
    const DataAddresses above = addresses(parent, 2);
    const Endpoint* const found = address_between(addresses(child), above, lane);
    return found == nullptr ? -1 : static_cast<int>(found->host[3] - '0');
  };
  EXPECT_EQ(between("ll", "ll", 0), 0);
  EXPECT_EQ(between("ll", "ll", 1), 1);
  EXPECT_EQ(between("ld", "ll", 1), 0) << "the child's second device is away";
  EXPECT_EQ(between("ll", "ld", 1), 0) << "the parent's second device is away";
  EXPECT_EQ(between("dll", "lld", 0), 1);
  EXPECT_EQ(between("ld", "dl", 0), 1) << "no pair lives: any living address will do";
  EXPECT_EQ(between("l", "ll", 1), 1) << "there are no pairs: the parent's addresses take turns";
  EXPECT_EQ(between("dd", "ll", 1), 1);
  EXPECT_EQ(between("ll", "dd", 1), -1);
}

TEST(Addresses, ThePlanGivesEveryLaneAnAddressOfItsOwnAtEveryAggregator) {
  const auto fabric = make_fabric(*parse_topology(leaf_spine_yaml(2, 2, 1), "test.yaml"));
  for (const std::size_t rails : {1U, 2U, 3U, 4U}) {
    auto aggregators = leaf_spine_aggregators(2, 1);
    for (std::size_t i = 0; i < aggregators.size(); ++i)
      aggregators[i].data = addresses(std::string(rails, 'l'), static_cast<int>(i) + 1);
    for (std::uint32_t lanes = 1; lanes <= 5; ++lanes) {
      const auto hosts = nodes(4);
      const Plan plan = fabric->plan({.hosts = hosts,
                                      .aggregators = aggregators,
                                      .lanes = lanes,
                                      .window = 32,
                                      .segment_bytes = 65536,
                                      .levels = 2},
                                     {});
      ASSERT_EQ(plan.lanes.size(), lanes);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const std::string network = "10." + std::to_string(lane % rails) + ".0.";
        EXPECT_EQ(plan.lanes[lane].levels, 2U);
        for (const TreeNode& node : plan.lanes[lane].nodes) {
          EXPECT_THAT(node.data.host, HasSubstr(network));
          if (node.parent == kNoParent) continue;
          EXPECT_EQ(node.up, plan.lanes[lane].nodes[node.parent].data);
        }
      }
    }
  }
}

TEST(Addresses, RecordsOfAnOlderManagerHaveOneAddressThatLives) {
  const auto old = aggregator_from_text(
      R"({"name":"a","incarnation":7,"host":"h","data_host":"10.0.0.1","data_port":7471,"http_host":"h","http_port":2,)"
      R"("memory_bytes":1,"children_max":2,"line_rate_bits_per_second":0,"version":"","draining":false,)"
      R"("expired":false,"registered_at":1})");
  ASSERT_TRUE(old.has_value()) << old.error().message;
  EXPECT_EQ(old->data, (DataAddresses{{.at = {"10.0.0.1", 7471}}}));
  const auto group = group_from_text(
      R"({"id":1,"job":"j","hosts":["a","b"],"lanes_wanted":1,"window":2,"segment_bytes":256,"levels_wanted":0,)"
      R"("epoch":3,"lanes":[{"nodes":[{"aggregator":"leaf","incarnation":1,"host":"h","data_host":"l","data_port":1,)"
      R"("parent":1},{"aggregator":"root","incarnation":2,"host":"h","data_host":"r","data_port":2,"parent":4294967295}],)"
      R"("leaf_of_rank":[0,0]}],"reason":"","failed":[{"name":"x","incarnation":1,"since":2}],"created_at":1})");
  ASSERT_TRUE(group.has_value()) << group.error().message;
  EXPECT_EQ(group->lanes[0].nodes[0].up, (Endpoint{"r", 2}));
}

/// Two leaves and a spine, with two addresses each.
class RailsTest : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    int which = 1;
    for (const auto& [name, host] :
         {std::pair{"leaf-a", "agg-leaf-0"}, {"leaf-b", "agg-leaf-1"}, {"spine", "agg-spine-0"}}) {
      number_[name] = which;
      const auto registered = cluster_->register_aggregator({.name = name,
                                                             .host = host,
                                                             .data = rail(0, which),
                                                             .http = {"10.0.0.1", 7472},
                                                             .memory_bytes = kMemory,
                                                             .data_more = {rail(1, which)}});
      ASSERT_TRUE(registered.has_value()) << registered.error().message;
      ++which;
    }
  }
  void tell(const std::string& name, const std::vector<std::uint32_t>& down) {
    const auto renewed = cluster_->renew_aggregator(name, std::nullopt, {}, down);
    ASSERT_TRUE(renewed.has_value()) << renewed.error().message;
  }
  [[nodiscard]] const TreeNode& node_of(std::uint64_t group, std::uint32_t lane, const std::string& name) {
    held_ = cluster_->group(group)->record;
    for (const TreeNode& node : held_->lanes.at(lane).nodes) {
      if (node.aggregator == name) return node;
    }
    throw std::runtime_error(name + " is not in the tree");
  }

  std::map<std::string, int> number_;
  std::shared_ptr<const GroupRecord> held_;
};

TEST_F(RailsTest, ARestartedManagerKnowsThatAnAddressIsDown) {
  tell("leaf-a", {1});
  const AggregatorRecord before = cluster_->aggregator("leaf-a")->record;
  EXPECT_FALSE(before.data[1].live);
  open();
  EXPECT_EQ(cluster_->aggregator("leaf-a")->record, before);
}

TEST_F(RailsTest, ATokenLeadsAChildToItsParentOnTheSameRail) {
  tell("leaf-a", {1});
  const auto grant = ask(2);
  ASSERT_EQ(grant->descriptor.lanes.size(), 2U);
  for (std::uint32_t lane = 0; lane < 2; ++lane) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const LaneEntry& entry = grant->descriptor.lanes[lane].entries[rank];
      const bool away = entry.aggregator_name == "leaf-a" && lane == 1;
      EXPECT_EQ(entry.aggregator, rail(away ? 0 : static_cast<int>(lane), number_[entry.aggregator_name]));
      const auto claims = read_claims(entry.tokens.front());
      EXPECT_EQ((Endpoint{claims->parent_host, claims->parent_port}), rail(away ? 0 : static_cast<int>(lane), 3));
    }
  }
}

TEST_F(RailsTest, AGroupThatLostADeviceIsBackOnTheTreeOverTheOthers) {
  const std::uint64_t id = ask(2)->descriptor.group;
  EXPECT_EQ(node_of(id, 1, "spine").data, rail(1, 3));
  // The ranks report the loss of the device before the aggregator does.
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"spine"}).has_value());
  EXPECT_FALSE(uses(id, "spine")) << "as far as the manager knows, the aggregator has failed";
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
  tell("spine", {1});
  EXPECT_EQ(cluster_->renew_group(id)->reason, "aggregator spine is back");
  ASSERT_TRUE(cluster_->rebuild_group(id, 2, {}).has_value());
  EXPECT_EQ(node_of(id, 0, "spine").data, rail(0, 3));
  EXPECT_EQ(node_of(id, 1, "spine").data, rail(0, 3));
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
  // The aggregator fails once more, for another reason: now the planner avoids it like any failed aggregator.
  ASSERT_TRUE(cluster_->rebuild_group(id, 3, {"spine"}).has_value());
  EXPECT_FALSE(uses(id, "spine"));
  tell("spine", {1});
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised) << "nothing has changed";
}

TEST_F(RailsTest, AnAggregatorThatReportedItsLostAddressFirstIsNotLeftOut) {
  const std::uint64_t id = ask(2)->descriptor.group;
  tell("spine", {0});
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"spine"}).has_value());
  EXPECT_EQ(node_of(id, 0, "spine").data, rail(1, 3));
  EXPECT_EQ(node_of(id, 1, "spine").data, rail(1, 3));
}

TEST_F(RailsTest, GroupsAreAdvisedToMoveWhenADeviceComesBackAndNotTwice) {
  tell("spine", {1});
  const std::uint64_t id = ask(2)->descriptor.group;
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
  tell("spine", {});
  EXPECT_EQ(cluster_->renew_group(id)->reason, "aggregator spine can be reached otherwise");
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {}, true).has_value());
  EXPECT_EQ(node_of(id, 1, "spine").data, rail(1, 3));
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
}

TEST_F(RailsTest, AnAggregatorWithoutALivingAddressGetsNoTrees) {
  for (const char* name : {"leaf-a", "leaf-b", "spine"}) tell(name, {0, 1});
  const auto grant = ask();
  EXPECT_TRUE(grant->descriptor.empty());
  EXPECT_THAT(grant->descriptor.reason, HasSubstr("no address of it lives"));
  tell("spine", {0});
  EXPECT_TRUE(cluster_->renew_group(grant->descriptor.group)->rebuild_advised);
  EXPECT_FALSE(cluster_->rebuild_group(grant->descriptor.group, 0, {})->descriptor.empty());
}

TEST_F(RailsTest, ARenewalGoesThroughWhileTheStoreIsFullAndIsWrittenLater) {
  store_.full = true;
  tell("spine", {1});
  EXPECT_FALSE(cluster_->aggregator("spine")->record.data[1].live);
  EXPECT_TRUE(store_.aggregators.at("spine").data[1].live);
  store_.full = false;
  cluster_->tick();
  EXPECT_FALSE(store_.aggregators.at("spine").data[1].live);
}

TEST_F(RailsTest, WrongAddressesAreRefusedAndNamed) {
  const auto refusal = [&](std::vector<Endpoint> more, std::vector<std::uint32_t> down = {}) {
    const auto answer = cluster_->register_aggregator({.name = "new",
                                                       .host = "agg-leaf-0",
                                                       .data = rail(0),
                                                       .http = rail(0),
                                                       .data_more = std::move(more),
                                                       .data_down = std::move(down)});
    return answer ? std::string() : answer.error().message;
  };
  EXPECT_THAT(refusal({rail(1), rail(0)}), HasSubstr("data_more[1]: 10.0.0.1:7471 is there twice"));
  EXPECT_THAT(refusal({{"h", 0}}), HasSubstr("data_more[0]: port 0"));
  EXPECT_THAT(refusal({{"a b", 1}}), HasSubstr("data_more[0]: "));
  EXPECT_THAT(refusal(std::vector<Endpoint>(16, rail(1))), HasSubstr("at most 16"));
  EXPECT_THAT(refusal({rail(1)}, {2}), HasSubstr("data_down names address 2, and there are 2"));
  EXPECT_EQ(refusal({rail(1)}, {1}), "");
  EXPECT_THAT(cluster_->renew_aggregator("new", std::nullopt, {}, {7}).error().message, HasSubstr("address 7"));
  EXPECT_FALSE(cluster_->aggregator("new")->record.data[1].live) << "the address is down, as before";
}

}  // namespace
}  // namespace tributary::manager

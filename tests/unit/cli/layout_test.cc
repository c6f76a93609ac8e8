#include <gmock/gmock.h>

#include "client/cli/cluster/cluster_layout.h"
#include "tree-manager/planner/fabric.h"
#include "tree-manager/topology/topology.h"

namespace tributary::cli {
namespace {

using testing::HasSubstr;

/// The plan that the manager will make for all ranks of this cluster.
manager::Plan plan_for(const ClusterLayout& layout, std::uint32_t lanes) {
  const auto topology = manager::parse_topology(layout.topology, "topology.yaml");
  if (!topology) return {.reason = topology.error().message};
  std::vector<manager::PlanAggregator> aggregators;
  for (const PlacedAggregator& placed : layout.aggregators) {
    aggregators.push_back({.name = placed.name,
                           .incarnation = 1,
                           .host = placed.host,
                           .data = {{.at = {"127.0.0.1", 1}}},
                           .memory_free_bytes = 4ULL << 30,
                           .children_max = 64});
  }
  return manager::make_fabric(*topology)->plan(
      {.hosts = layout.host_of_rank, .aggregators = aggregators, .lanes = lanes, .window = 32, .segment_bytes = 65536},
      {});
}

TEST(ClusterLayout, LeadsThePlannerToAsManyLevelsAsWanted) {
  int shapes = 0;
  for (std::uint32_t levels = 1; levels <= 4; ++levels) {
    for (std::uint32_t ranks = levels + 1; ranks <= 24; ranks += 3) {
      for (const std::uint32_t aggregators : {levels, levels + 1, 2 * levels + 1, 16U}) {
        const auto layout = lay_out_cluster({.ranks = ranks, .aggregators = aggregators, .levels = levels});
        ASSERT_TRUE(layout) << layout.error().message;
        EXPECT_EQ(layout->aggregators.size(), aggregators);
        EXPECT_EQ(layout->host_of_rank.size(), ranks);
        for (const std::uint32_t lanes : {1U, 2U}) {
          const manager::Plan plan = plan_for(*layout, lanes);
          ASSERT_EQ(plan.lanes.size(), lanes) << plan.reason;
          // Two lanes share the links, so the planner may find that trees of fewer levels are quicker.
          for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
            const std::string shape = std::to_string(ranks) + " ranks, " + std::to_string(aggregators) +
                                      " aggregators, lane " + std::to_string(i) + "\n" + layout->topology;
            if (lanes == 1) {
              EXPECT_EQ(plan.lanes[i].levels, levels) << shape;
            }
            EXPECT_LE(plan.lanes[i].levels, levels) << shape;
          }
        }
        ++shapes;
      }
    }
  }
  EXPECT_GT(shapes, 100);
}

// Aggregators carry more than all ranks send, so no second lane saves time, and workers for one lane are enough.
TEST(ClusterLayout, LeadsThePlannerToOneLaneIfItChoosesTheirNumber) {
  for (std::uint32_t levels = 1; levels <= 4; ++levels) {
    for (const std::uint32_t ranks : {levels + 1, 8U, 24U, 64U}) {
      for (const std::uint32_t aggregators : {levels, 2 * levels + 1, 16U}) {
        const auto layout = lay_out_cluster({.ranks = ranks, .aggregators = aggregators, .levels = levels});
        ASSERT_TRUE(layout) << layout.error().message;
        const manager::Plan plan = plan_for(*layout, 0);
        ASSERT_EQ(plan.lanes.size(), 1U) << ranks << " ranks, " << aggregators << " aggregators; " << plan.reason;
        EXPECT_EQ(plan.lanes[0].levels, levels) << ranks << " ranks, " << aggregators << " aggregators";
      }
    }
  }
}

TEST(ClusterLayout, ChoosesLevelsThatSuitRanksAndAggregators) {
  EXPECT_EQ(lay_out_cluster({.ranks = 8, .aggregators = 1}).value().levels, 1U);
  EXPECT_EQ(lay_out_cluster({.ranks = 8, .aggregators = 3}).value().levels, 2U);
  EXPECT_EQ(lay_out_cluster({.ranks = 2, .aggregators = 3}).value().levels, 1U);
}

TEST(ClusterLayout, RefusesWhatCannotBeAndSaysWhatIsNeeded) {
  const auto refused = [](const ClusterShape& shape) {
    const auto layout = lay_out_cluster(shape);
    EXPECT_FALSE(layout);
    return layout ? std::string() : layout.error().message;
  };
  EXPECT_THAT(refused({.ranks = 2, .aggregators = 3, .levels = 2}), HasSubstr("3 ranks"));
  EXPECT_THAT(refused({.ranks = 8, .aggregators = 1, .levels = 2}), HasSubstr("2 aggregators"));
  EXPECT_THAT(refused({.ranks = 0, .aggregators = 1}), HasSubstr("ranks"));
  EXPECT_THAT(refused({.ranks = 8, .aggregators = 65}), HasSubstr("aggregators"));
  EXPECT_THAT(refused({.ranks = 8, .aggregators = 9, .levels = 7}), HasSubstr("levels"));
}

}  // namespace
}  // namespace tributary::cli

// Measures the planner on a cluster of 100,000 hosts with 4,096 aggregators: the time of a plan, the number of groups
// that it plans in a second while it keeps their loads, its memory, and the times of its plans relative to a lower
// bound.
//
//     planner_bench [--benchmark_filter=REGEX]
//
// Read the column CPU: it is processor time, which does not depend on other work of the machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/manager/counted_memory.h"
#include "tests/unit/manager/large_fabric.h"

namespace {

using namespace tributary;
using namespace tributary::manager;

constexpr std::uint32_t kWindow = 32;
constexpr std::uint32_t kSegmentBytes = 64U << 10;

struct World {
  ClusterShape shape{};
  std::unique_ptr<const Fabric> fabric = make_fabric(*parse_topology(cluster_yaml(shape), "bench"));
  std::vector<PlanAggregator> aggregators = cluster_aggregators(shape);
  std::shared_ptr<const AggregatorIndex> index = fabric->index(aggregators);

  [[nodiscard]] Plan plan(const std::vector<std::string>& hosts, std::uint32_t lanes, const FabricLoad& load) const {
    Plan plan = fabric->plan({.hosts = hosts,
                              .aggregators = aggregators,
                              .lanes = lanes,
                              .window = kWindow,
                              .window_is_for_all = true,
                              .segment_bytes = kSegmentBytes,
                              .index = index.get()},
                             load);
    if (plan.lanes.empty()) std::abort();
    return plan;
  }
};

const World& world() {
  static const World one;
  return one;
}

/// Returns hosts from `first` on, or, with `spread`, hosts anywhere in the cluster.
std::vector<std::string> members(int count, int first, bool spread) {
  std::vector<std::string> hosts;
  std::mt19937 random(static_cast<unsigned>(first));
  std::uniform_int_distribution<int> anywhere(0, world().shape.hosts - 1);
  for (int i = 0; i < count; ++i) hosts.push_back("node-" + std::to_string(spread ? anywhere(random) : first + i));
  return hosts;
}

/// Plans one group. The arguments are ranks, lanes (0: as many as save time), and whether the hosts are spread.
void plan_group(benchmark::State& state) {
  const auto hosts = members(static_cast<int>(state.range(0)), 0, state.range(2) != 0);
  const auto lanes = static_cast<std::uint32_t>(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(world().plan(hosts, lanes, {}));
  const Plan plan = world().plan(hosts, lanes, {});
  state.counters["lanes"] = static_cast<double>(plan.lanes.size());
  state.counters["levels"] = plan.lanes[0].levels;
}
BENCHMARK(plan_group)
    ->ArgNames({"ranks", "lanes", "spread"})
    ->Args({64, 0, 0})
    ->Args({64, 0, 1})
    ->Args({64, 1, 0})
    ->Args({64, 1, 1})
    ->Args({1024, 0, 0})
    ->Args({32'768, 0, 0})
    ->Args({100'000, 1, 0})
    ->Args({100'000, 0, 0})
    ->Unit(benchmark::kMillisecond);

/// Plans groups one after the other, each on top of the loads of the 1,000 groups before it.
void plan_groups_with_loads(benchmark::State& state) {
  constexpr std::size_t kGroups = 1000;
  const World& here = world();
  struct Group {
    std::vector<std::string> hosts;
    std::vector<LaneTree> lanes;
  };
  std::deque<Group> groups;
  FabricLoad load;
  int next = 0;
  for (auto _ : state) {
    Group group{members(static_cast<int>(state.range(0)), next, state.range(1) != 0), {}};
    next = (next + 97) % (here.shape.hosts - static_cast<int>(state.range(0)));
    group.lanes = here.plan(group.hosts, 0, load).lanes;
    here.fabric->add(load, group.lanes, group.hosts);
    groups.push_back(std::move(group));
    if (groups.size() <= kGroups) continue;
    here.fabric->remove(load, groups.front().lanes, groups.front().hosts);
    groups.pop_front();
  }
  state.counters["lanes"] = static_cast<double>(groups.back().lanes.size());
  state.counters["groups/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(plan_groups_with_loads)
    ->ArgNames({"ranks", "spread"})
    ->Args({8, 0})
    ->Args({64, 0})
    ->Args({64, 1})
    ->Unit(benchmark::kMicrosecond);

/// Measures the most memory that a plan uses at a time, its result included.
void plan_memory(benchmark::State& state) {
  const auto hosts = members(static_cast<int>(state.range(0)), 0, false);
  std::size_t most = 0;
  for (auto _ : state) {
    const MemoryCount count;
    benchmark::DoNotOptimize(world().plan(hosts, static_cast<std::uint32_t>(state.range(1)), {}));
    most = std::max(most, count.most());
  }
  state.counters["MB"] = static_cast<double>(most) / 1e6;
  state.counters["bytes/rank"] = static_cast<double>(most) / static_cast<double>(state.range(0));
}
BENCHMARK(plan_memory)
    ->ArgNames({"ranks", "lanes"})
    ->Args({12'500, 4})
    ->Args({25'000, 4})
    ->Args({50'000, 4})
    ->Args({100'000, 4})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// Compares plans with a lower bound of the time, on 32,768 hosts: `of_bound` is the estimate divided by it.
void plan_quality(benchmark::State& state) {
  const std::uint64_t uplink_gbit = static_cast<std::uint64_t>(state.range(1));
  const World here{{.hosts = 32'768,
                    .per_pod = 16,
                    .at_core = 64,
                    .rack_uplink_gbit = uplink_gbit,
                    .aggregator_gbit = static_cast<std::uint64_t>(state.range(2))}};
  std::vector<std::string> hosts;
  std::mt19937 random(7);
  for (int i = 0; i < state.range(0); ++i) {
    const bool spread = state.range(3) != 0;
    const int host = spread ? std::uniform_int_distribution<int>(0, here.shape.hosts - 1)(random) : i;
    hosts.push_back("node-" + std::to_string(host));
  }
  if (state.range(3) != 0) {
    std::ranges::sort(hosts);
    hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  }
  Plan plan;
  for (auto _ : state) plan = here.plan(hosts, 0, {});
  state.counters["lanes"] = static_cast<double>(plan.lanes.size());
  state.counters["ms"] = plan.estimated_seconds * 1000;
  state.counters["of_bound"] = plan.estimated_seconds / seconds_bound(here.shape, hosts, 25ULL << 20);
}
BENCHMARK(plan_quality)
    ->ArgNames({"ranks", "uplink", "aggregator", "spread"})
    ->ArgsProduct({{64, 1024, 32'768}, {3200, 800}, {400, 100}, {0}})
    ->ArgsProduct({{64, 1024}, {3200, 800}, {400, 100}, {1}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

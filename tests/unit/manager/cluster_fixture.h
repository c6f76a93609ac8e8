#pragma once
// A cluster whose time and store the test owns.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/unit/manager/fabrics.h"
#include "tests/unit/manager/memory_store.h"
#include "tree-manager/service/cluster.h"

namespace tributary::manager {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return TimePoint(std::chrono::milliseconds(milliseconds_)); }
  [[nodiscard]] std::int64_t unix_milliseconds() const override { return 1'800'000'000'000 + milliseconds_ + wall_; }
  void advance(std::chrono::milliseconds by) { milliseconds_ += by.count(); }
  /// Sets the wall clock, as an administrator might.
  void step_wall(std::chrono::milliseconds by) { wall_ += by.count(); }

 private:
  std::int64_t milliseconds_ = 1'000'000;
  std::int64_t wall_ = 0;
};

class ClusterFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMemory = 1ULL << 30;

  ClusterFixture() : key_(std::move(*SigningKey::generate())) {}

  /// Opens the cluster with the topology `yaml`; by default it has two leaves of two nodes each and a spine. "" stands
  /// for the manager's default topology.
  void open(const std::string& yaml = leaf_spine_yaml(2, 2, 1)) {
    cluster_.reset();
    std::optional<Topology> topology;
    if (!yaml.empty()) topology = *parse_topology(yaml, "test.yaml");
    auto opened = Cluster::open(settings_, store_, key_, clock_, std::move(topology));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    cluster_ = std::move(*opened);
  }
  Result<Registered> enlist(const std::string& name, const std::string& host, std::uint64_t memory = kMemory,
                            PacketSecurity security = PacketSecurity::off) {
    return cluster_->register_aggregator({.name = name,
                                          .host = host,
                                          .data = {"10.0.0.1", static_cast<std::uint16_t>(7000 + ports_++)},
                                          .http = {"10.0.0.1", 7472},
                                          .memory_bytes = memory,
                                          .children_max = kChildrenMax,
                                          .version = "test",
                                          .security = security});
  }
  void enlist_all() {
    ASSERT_TRUE(enlist("leaf-a", "agg-leaf-0").has_value());
    ASSERT_TRUE(enlist("leaf-b", "agg-leaf-1").has_value());
    ASSERT_TRUE(enlist("spine", "agg-spine-0").has_value());
  }
  Result<GroupGrant> ask(std::uint32_t lanes = 1, int ranks = 4) {
    return cluster_->create_group({.job = "job", .hosts = nodes(ranks), .lanes = lanes});
  }
  [[nodiscard]] std::uint64_t reserved() const { return cluster_->stats().memory_reserved_bytes; }
  [[nodiscard]] bool uses(std::uint64_t group, const std::string& aggregator) const {
    for (const LaneTree& lane : cluster_->group(group)->record->lanes) {
      for (const TreeNode& node : lane.nodes) {
        if (node.aggregator == aggregator) return true;
      }
    }
    return false;
  }
  /// Lets time pass while the manager runs.
  void advance(std::chrono::milliseconds by) {
    constexpr std::chrono::milliseconds kTick{200};
    for (; by > kTick; by -= kTick) {
      clock_.advance(kTick);
      cluster_->tick();
    }
    clock_.advance(by);
    cluster_->tick();
  }
  /// Lets time pass while the manager is stopped.
  void stand_still(std::chrono::milliseconds by) {
    clock_.advance(by);
    cluster_->tick();
  }

  ClusterSettings settings_;
  MemoryStore store_;
  ManualClock clock_;
  SigningKey key_;
  std::unique_ptr<Cluster> cluster_;
  int ports_ = 0;
};

}  // namespace tributary::manager

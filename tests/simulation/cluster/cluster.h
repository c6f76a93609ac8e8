#pragma once
// A whole cluster in one thread from one seed: ranks (client::Communicator), aggregators (aggregator::Worker) and a
// manager that plans random trees, on a SimNetwork. The code under test is the product's own; only sockets, threads and
// time are simulated.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/simulation/cluster/cluster_settings.h"
#include "tests/simulation/cluster/sim_aggregator.h"
#include "tests/simulation/cluster/sim_manager.h"
#include "tests/simulation/cluster/sim_rank.h"
#include "tributary/transport/sim_network.h"

namespace tributary::simulation {

class Cluster {
 public:
  explicit Cluster(const ClusterSettings& settings);
  ~Cluster();

  /// Adds a group of nranks ranks that all make the same calls.
  void add_group(std::uint32_t nranks, std::uint32_t lanes, const WorkloadSettings& workload);
  /// Runs until every rank is done, or for `limit` of virtual time; then returns false. The function checks the
  /// invariants after every step.
  bool run(transport::Duration limit);
  /// Reports a broken invariant, which a part of the cluster has found during the run.
  void violation(const std::string& what);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::string describe() const;

  transport::SimNetwork& network() { return *network_; }
  SimManager& manager() { return *manager_; }
  std::vector<std::unique_ptr<SimAggregator>>& aggregators() { return aggregators_; }
  std::vector<std::vector<std::unique_ptr<SimRank>>>& groups() { return groups_; }
  const ClusterSettings& settings() const { return settings_; }
  std::mt19937_64& random() { return random_; }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  /// The transport that this host uses.
  [[nodiscard]] transport::Transport& between(const std::string& host, transport::Transport& network) const {
    transport::Transport* const instead = settings_.in_between ? settings_.in_between(host, network) : nullptr;
    return instead != nullptr ? *instead : network;
  }
  /// The time of this process's wall clock. Only tokens use it. All other code uses steady time, which is the network's
  /// time.
  [[nodiscard]] std::int64_t unix_seconds(const std::string& process) const;
  /// Sets the process's clock forward or back.
  void step_clock(const std::string& process, std::chrono::seconds by) { clock_steps_[process] += by; }

 private:
  const ClusterSettings settings_;
  std::mt19937_64 random_;
  std::unique_ptr<transport::SimNetwork> network_;
  std::unique_ptr<SimManager> manager_;
  std::vector<std::unique_ptr<SimAggregator>> aggregators_;
  std::vector<std::vector<std::unique_ptr<SimRank>>> groups_;
  std::vector<std::string> violations_;
  std::map<std::string, std::chrono::seconds> clock_steps_;
};

}  // namespace tributary::simulation

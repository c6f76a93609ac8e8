#pragma once
// An aggregator of a simulated cluster.
#include <cstdint>
#include <memory>
#include <string>

#include "aggregator/worker/worker.h"
#include "tributary/transport/channel.h"

namespace tributary::simulation {

class Cluster;

/// One aggregator process; it may be killed and restarted.
class SimAggregator {
 public:
  SimAggregator(Cluster& cluster, std::uint32_t index);
  void start();
  void kill();
  [[nodiscard]] bool alive() const { return worker_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] aggregator::Worker& worker() { return *worker_; }
  [[nodiscard]] aggregator::MemoryBudget& budget() { return *budget_; }

 private:
  Cluster& cluster_;
  const std::string name_;
  std::unique_ptr<aggregator::MemoryBudget> budget_;
  std::unique_ptr<aggregator::Worker> worker_;
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace tributary::simulation

#include "tests/simulation/cluster/sim_aggregator.h"

#include <chrono>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {

using namespace std::chrono_literals;
using transport::Duration;

SimAggregator::SimAggregator(Cluster& cluster, std::uint32_t index)
    : cluster_(cluster), name_("aggregator" + std::to_string(index)) {
  start();
}

void SimAggregator::start() {
  auto& network = cluster_.network();
  auto& transport = cluster_.between(name_, network.alive(name_) ? network.transport(name_) : network.restart(name_));
  budget_ = std::make_unique<aggregator::MemoryBudget>(64U << 20);
  aggregator::WorkerSettings settings;
  settings.name = name_;
  settings.form_limit = 2s;
  worker_ = std::make_unique<aggregator::Worker>(transport, cluster_.manager().verifier(), *budget_, settings,
                                                 [this] { return cluster_.unix_seconds(name_); });
  listener_ = std::move(*transport.listen({name_, kAggregatorPort}, *worker_));
  network.on_due(name_, [this, &transport] {
    transport.poll(Duration::zero());
    if (!worker_) return;
    worker_->tick(transport.now());
    cluster_.network().wake_at(name_, transport.now() + kTick);
  });
  network.wake_at(name_, network.now() + kTick);
}

void SimAggregator::kill() {
  if (!alive()) return;
  cluster_.network().kill(name_);
  listener_.reset();
  worker_.reset();
}

}  // namespace tributary::simulation

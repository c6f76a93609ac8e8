#include "tests/simulation/cluster/cluster.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/cluster/invariants.h"

namespace tributary::simulation {

using transport::Duration;

Cluster::Cluster(const ClusterSettings& settings) : settings_(settings), random_(settings.seed) {
  transport::SimSettings network = settings.network;
  network.seed = settings.seed;
  network_ = std::make_unique<transport::SimNetwork>(network);
  manager_ = std::make_unique<SimManager>(*this, settings.seed ^ 0x5EED);
  for (std::uint32_t i = 0; i < settings.aggregators; ++i)
    aggregators_.push_back(std::make_unique<SimAggregator>(*this, i));
}

Cluster::~Cluster() {
  groups_.clear();
  aggregators_.clear();
}

void Cluster::add_group(std::uint32_t nranks, std::uint32_t lanes, const WorkloadSettings& workload) {
  const auto group = static_cast<std::uint32_t>(groups_.size());
  auto calls = std::make_shared<const std::vector<Call>>(make_calls(random_, nranks, workload));
  client::UniqueId id;
  id.root = {"g" + std::to_string(group) + "r0", kRankPort};
  for (auto& b : id.secret) b = static_cast<std::byte>(random_());
  auto& ranks = groups_.emplace_back();
  for (std::uint32_t r = 0; r < nranks; ++r)
    ranks.push_back(std::make_unique<SimRank>(*this, group, r, nranks, lanes, id, calls));
}

bool Cluster::run(Duration limit) {
  return network_->run_until(
      [this] {
        check_invariants(*this);
        if (!violations_.empty()) return true;
        return std::all_of(groups_.begin(), groups_.end(), [](const auto& ranks) {
          return std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r->done(); });
        });
      },
      network_->now() + limit);
}

std::int64_t Cluster::unix_seconds(const std::string& process) const {
  const auto since_start = std::chrono::duration_cast<std::chrono::seconds>(network_->now().time_since_epoch());
  const auto step = clock_steps_.find(process);
  return 1'700'000'000 + since_start.count() + (step == clock_steps_.end() ? 0 : step->second.count());
}

void Cluster::violation(const std::string& what) {
  if (violations_.size() < 20) violations_.push_back(what);
}

std::string Cluster::describe() const {
  std::string text;
  for (const auto& v : violations_) text += "violation: " + v + "\n";
  for (const auto& ranks : groups_) {
    for (const auto& r : ranks) text += r->state() + "\n";
  }
  return text;
}

}  // namespace tributary::simulation

#pragma once
// A whole cluster in one thread from one seed: ranks (client::Communicator), aggregators (aggregator::Worker) and a
// manager that plans random trees, on a SimNetwork. The code under test is the product's own; only sockets, threads and
// time are simulated.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aggregator/worker/worker.h"
#include "client/communicator/communicator.h"
#include "tests/simulation/cluster/distant_memory.h"
#include "tests/simulation/cluster/slow_memory.h"
#include "tests/simulation/cluster/two_ways.h"
#include "tests/simulation/cluster/workload.h"
#include "tributary/transport/sim_network.h"

namespace tributary::simulation {

struct ClusterSettings {
  std::uint64_t seed = 1;
  std::uint32_t aggregators = 4;
  std::uint32_t window = 4;
  std::uint32_t segment_bytes = 512;
  transport::Duration timeout = std::chrono::seconds(20);
  std::uint32_t lease_seconds = 15;
  std::uint32_t advice_percent = 0;  // percent of a lease's renewals at which the manager advises better trees
  transport::SimSettings network;
  std::optional<tuning::Table> tuning;  // for every rank 0; nullopt: use a tree whenever there is one
  bool devices = false;                 // each rank has a device, and a second way
  client::PathMode path = client::PathMode::automatic;
  /// Returns the transport that a host uses in place of its own, which it is given: for a host that breaks the
  /// protocol. If this is empty, or returns null, the host uses its own.
  std::function<transport::Transport*(const std::string& host, transport::Transport& network)> in_between;
};

class Cluster;

/// Plans trees of 1 to 3 levels over the aggregators that are alive, signs their tokens, and forgets groups that do not
/// renew their lease. Like any process it may stand still, and then answers the requests afterwards.
class SimManager {
 public:
  SimManager(Cluster& cluster, std::uint64_t seed);
  /// Runs a request: now, or when the process goes on.
  void when_there(std::function<void()> request);
  void pause();
  void resume();
  /// Acts like a manager that restarts without its store.
  void forget_groups() { leases_.clear(); }
  [[nodiscard]] Status check_lease(std::uint64_t group) const;
  void renew_lease(std::uint64_t group);
  void release(std::uint64_t group) { leases_.erase(group); }
  [[nodiscard]] Result<GroupDescriptor> plan(std::uint64_t group, std::uint32_t epoch, std::uint32_t nranks,
                                             std::uint32_t lanes, const std::vector<std::string>& failed);
  [[nodiscard]] const TokenVerifier& verifier() const { return verifier_; }
  bool reachable = true;
  bool silent = false;                                  // takes requests, but answers none
  std::vector<std::vector<std::string>> told_failed{};  // by plan: the failed aggregators in the request
  std::uint32_t refuse_percent = 0;                     // percent of the requests to refuse
  std::optional<std::uint32_t> levels;                  // nullopt: drawn
  /// Plans whole trees, in which each aggregator has at most this many children, over the first aggregators that live;
  /// nullopt: drawn, with `levels`.
  std::optional<std::uint32_t> fan_out;
  std::uint64_t next_group = 1;
  std::uint64_t plans = 0;      // requests for a plan
  std::uint64_t moves = 0;      // how many of `plans` came from groups that had trees
  std::uint64_t forgotten = 0;  // requests for groups that it did not know

 private:
  [[nodiscard]] Result<LaneDescriptor> plan_lane(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane,
                                                 std::uint32_t nranks, std::vector<std::uint32_t> usable);
  struct Node {
    std::uint32_t aggregator = 0;
    std::size_t parent = SIZE_MAX;
    std::uint32_t child = 0;
    std::uint32_t children = 0;
    std::uint32_t lowest = UINT32_MAX;
  };
  struct Shape {
    std::vector<Node> nodes;  // the first is the root
    std::uint32_t levels = 1;
    std::vector<std::size_t> leaf_of;  // by rank
  };
  [[nodiscard]] Shape draw(std::uint32_t nranks, const std::vector<std::uint32_t>& usable);
  [[nodiscard]] Shape whole(std::uint32_t nranks, const std::vector<std::uint32_t>& usable) const;
  Cluster& cluster_;
  std::mt19937_64 random_;
  SigningKey key_;
  TokenVerifier verifier_;
  std::map<std::uint64_t, transport::TimePoint> leases_;  // by group: the end of its lease
  bool paused_ = false;
  transport::TimePoint paused_at_{};
  std::vector<std::function<void()>> waiting_;
};

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

/// One rank process: makes its calls, a few outstanding at a time, and checks each result as it arrives.
class SimRank {
 public:
  SimRank(Cluster& cluster, std::uint32_t group, std::uint32_t rank, std::uint32_t nranks, std::uint32_t lanes,
          client::UniqueId id, std::shared_ptr<const std::vector<Call>> calls);
  ~SimRank();
  void kill();
  /// For settings with devices: breaks its connections to aggregators and ranks, but not those to rank 0.
  void lose_device(bool silent);
  [[nodiscard]] bool has_device() const { return ways_ != nullptr && !ways_->lost(); }
  [[nodiscard]] bool done() const { return finalized_ || failed_.has_value() || !communicator_; }
  [[nodiscard]] bool alive() const { return communicator_ != nullptr; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failed_; }
  [[nodiscard]] client::Communicator& communicator() { return *communicator_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  [[nodiscard]] std::string state() const;
  /// At most this many calls under way; 0 stops calling.
  std::uint32_t outstanding_max = 4;
  transport::Duration think_max{};
  /// At most this many bytes of a call's input arrive at once, as from a GPU; 0: all are there from the start.
  std::size_t arriving_bytes_max = 0;
  /// Puts its buffers into memory that the processor does not reach; `refuses`: the network's devices do not reach it
  /// either.
  void use_distant_memory(bool refuses);
  [[nodiscard]] const std::shared_ptr<DistantDevice>& distant() const { return distant_; }
  transport::Duration distant_pause_max = std::chrono::microseconds(50);  // between a few of its copies and the next
  /// Counts its calls that went through trees in place, and those that became staged before they ended.
  std::uint64_t went_direct = 0, materialized = 0;
  /// Replaces the call that this rank makes as its n-th operation.
  std::map<std::size_t, Call> other_calls;

 private:
  class Service;
  void pump();
  void call_next();
  void let_input_arrive();
  void on_result(std::size_t index, const Status& status);
  Cluster& cluster_;
  const std::uint32_t group_, rank_, nranks_;
  const std::string host_;
  std::shared_ptr<const std::vector<Call>> calls_;
  std::mt19937_64 random_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<TwoWays> ways_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<client::Communicator> communicator_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::map<std::size_t, std::shared_ptr<SlowMemory>> slow_;  // by call, for those under way
  std::shared_ptr<DistantDevice> distant_;
  transport::TimePoint distant_at_{};
  std::size_t next_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t completed_ = 0;
  transport::TimePoint next_call_at_{};
  bool ready_ = false;
  bool finalizing_ = false;
  bool finalized_ = false;
  std::optional<Error> failed_;
};

class Cluster {
 public:
  explicit Cluster(const ClusterSettings& settings);
  ~Cluster();

  /// Adds a group of nranks ranks that all make the same calls.
  void add_group(std::uint32_t nranks, std::uint32_t lanes, const WorkloadSettings& workload);
  /// Runs until every rank is done, or for `limit` of virtual time; then returns false.
  bool run(transport::Duration limit);
  /// Checks the invariants between the ranks of a group after every step.
  void check_invariants();
  /// Reports a broken invariant, found while running.
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
  /// The time of this process's wall clock. Everything except credentials goes by steady time, which is the network's.
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

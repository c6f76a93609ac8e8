#pragma once
// A whole cluster in one thread and one seed: ranks (client::Communicator), aggregators (aggregator::Worker) and a
// manager that plans random trees, on a SimNetwork. The code under test is the product's own; only sockets, threads and
// time are imitated.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aggregator/worker/worker.h"
#include "client/communicator/communicator.h"
#include "distant_memory.h"
#include "slow_memory.h"
#include "tributary/transport/sim_network.h"
#include "two_ways.h"
#include "workload.h"

namespace tributary::simulation {

struct ClusterSettings {
  std::uint64_t seed = 1;
  std::uint32_t aggregators = 4;
  std::uint32_t window = 4;
  std::uint32_t segment_bytes = 512;
  transport::Duration timeout = std::chrono::seconds(20);
  std::uint32_t lease_seconds = 15;
  std::uint32_t advice_percent = 0;  // of a lease's renewals: the manager has better trees
  transport::SimSettings network;
  std::optional<tuning::Table> tuning;  // of every rank 0; none: a tree whenever there is one
  bool devices = false;                 // ranks have one each, and a second way
  client::PathMode path = client::PathMode::automatic;
  /// What a host uses in the place of its transport, which it is given: for one that does not keep to the protocol.
  /// Null, or none: the transport itself.
  std::function<transport::Transport*(const std::string& host, transport::Transport& network)> in_between;
};

class Cluster;

/// Plans trees of 1 to 3 levels over the aggregators that are alive, signs their tokens, and forgets groups that do not
/// renew their lease. A process as all others: it may stand still, and what is asked meanwhile is answered afterwards.
class SimManager {
 public:
  SimManager(Cluster& cluster, std::uint64_t seed);
  /// Runs what a request asks for: now, or when the process goes on.
  void when_there(std::function<void()> request);
  void pause();
  void resume();
  /// As one that comes back without its store.
  void forget_groups() { leases_.clear(); }
  [[nodiscard]] Status check_lease(std::uint64_t group) const;
  void renew_lease(std::uint64_t group);
  void release(std::uint64_t group) { leases_.erase(group); }
  [[nodiscard]] Result<GroupDescriptor> plan(std::uint64_t group, std::uint32_t epoch, std::uint32_t nranks,
                                             std::uint32_t lanes, const std::vector<std::string>& failed);
  [[nodiscard]] const TokenVerifier& verifier() const { return verifier_; }
  bool reachable = true;
  bool silent = false;                                  // takes requests, and answers none
  std::vector<std::vector<std::string>> told_failed{};  // by plan
  std::uint32_t refuse_percent = 0;                     // of the requests
  std::optional<std::uint32_t> levels;                  // else drawn
  /// Whole trees, in which each aggregator has at most so many children, over the first aggregators that live; else
  /// drawn, as `levels` says.
  std::optional<std::uint32_t> fan_out;
  std::uint64_t next_group = 1;
  std::uint64_t plans = 0;      // that were asked for
  std::uint64_t moves = 0;      // of them, by groups that had trees
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
  std::map<std::uint64_t, transport::TimePoint> leases_;  // by group: its end
  bool paused_ = false;
  transport::TimePoint paused_at_{};
  std::vector<std::function<void()>> waiting_;
};

/// One aggregator process: may be killed and come back.
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

/// One rank process: calls its list, a few outstanding at a time, and checks each result as it comes.
class SimRank {
 public:
  SimRank(Cluster& cluster, std::uint32_t group, std::uint32_t rank, std::uint32_t nranks, std::uint32_t lanes,
          client::UniqueId id, std::shared_ptr<const std::vector<Call>> calls);
  ~SimRank();
  void kill();
  /// Of settings with devices: its connections to aggregators and ranks break, those to rank 0 do not.
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
  /// Of each of its calls' buffers so many bytes at most come at once, as from a GPU; 0: they are there.
  std::size_t arriving_bytes_max = 0;
  /// Its buffers are memory that the processor does not reach; `refuses`: nor do the network's devices.
  void use_distant_memory(bool refuses);
  [[nodiscard]] const std::shared_ptr<DistantDevice>& distant() const { return distant_; }
  transport::Duration distant_pause_max = std::chrono::microseconds(50);  // between a few of its copies and the next
  /// Of its calls: through trees as they were, and made staged ones before they ended.
  std::uint64_t went_direct = 0, materialized = 0;
  /// Replaces what this rank calls as its n-th operation.
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
  std::map<std::size_t, std::shared_ptr<SlowMemory>> slow_;  // by call, those under way
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

  /// A group of nranks ranks that all make the same calls.
  void add_group(std::uint32_t nranks, std::uint32_t lanes, const WorkloadSettings& workload);
  /// Runs until every rank is done, or `limit` of virtual time. False: not done.
  bool run(transport::Duration limit);
  /// The invariants that hold between the ranks of a group after every step.
  void check_invariants();
  /// Something that must never be, found while running.
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
  /// What this host talks through.
  [[nodiscard]] transport::Transport& between(const std::string& host, transport::Transport& network) const {
    transport::Transport* const instead = settings_.in_between ? settings_.in_between(host, network) : nullptr;
    return instead != nullptr ? *instead : network;
  }
  /// The time that this process's wall clock shows. Steady time, which everything but credentials goes by, is the
  /// network's.
  [[nodiscard]] std::int64_t unix_seconds(const std::string& process) const;
  /// Sets it forward, or back.
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

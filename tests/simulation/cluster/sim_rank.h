#pragma once
// A rank of a simulated cluster.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/api/factors.h"
#include "client/communicator/communicator.h"
#include "tests/simulation/cluster/distant_memory.h"
#include "tests/simulation/cluster/slow_memory.h"
#include "tests/simulation/cluster/two_ways.h"
#include "tests/simulation/cluster/workload.h"

namespace tributary::simulation {

class Cluster;
class SimGroupService;

/// One rank process. It makes its calls, of which a few run at a time, and checks each result when it arrives.
class SimRank {
 public:
  SimRank(Cluster& cluster, std::uint32_t group, std::uint32_t rank, std::uint32_t nranks, std::uint32_t lanes,
          const client::UniqueId& id, std::shared_ptr<const std::vector<Call>> calls);
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
  /// Sets how many calls may run at a time; 0: the rank makes no more calls.
  std::uint32_t outstanding_max = 4;
  transport::Duration think_max{};
  /// Sets how many bytes of a call's input arrive at once at most, as from a GPU; 0: the whole input exists from the
  /// start.
  std::size_t arriving_bytes_max = 0;
  /// Puts the rank's buffers into memory that the processor cannot access; `refuses`: the network's devices also
  /// cannot.
  void use_distant_memory(bool refuses);
  [[nodiscard]] const std::shared_ptr<DistantDevice>& distant() const { return distant_; }
  transport::Duration distant_pause_max = std::chrono::microseconds(50);  // longest pause between a few of its copies
                                                                          // and the next copies
  /// Counts the rank's calls that went through trees in place, and its calls that the library staged before they ended.
  std::uint64_t went_direct = 0, materialized = 0;
  /// Replaces the n-th call that this rank makes.
  std::map<std::size_t, Call> other_calls;

 private:
  [[nodiscard]] std::unique_ptr<TwoWays> two_ways() const;
  [[nodiscard]] client::CommunicatorSettings communicator_settings(const client::UniqueId& id,
                                                                   std::uint32_t lanes) const;
  void pump();
  void finalize();
  /// Advances arriving input and copies of distant memory; returns when the rank wants its next turn.
  transport::TimePoint move_memory(transport::TimePoint now);
  void call_next();
  [[nodiscard]] const Call& call_of(std::size_t index) const;
  [[nodiscard]] std::uint64_t salt_of(std::size_t index) const;
  /// Sets send and recv to addresses in one buffer, by the rules of calls in place.
  void put_in_place(client::Operation& operation, Buffers& buffers) const;
  /// Makes the operation of a pre-multiplied sum, as the library's functions do.
  [[nodiscard]] std::unique_ptr<client::Operation> multiplied(const client::Operation& operation, const Call& call,
                                                              Buffers& buffers);
  /// If the settings say so, lets the input arrive in parts, or puts the buffers into distant memory.
  void place_memory(client::Operation& operation, const Call& call, std::size_t index);
  void let_input_arrive();
  void on_result(std::size_t index, const Status& status);

  Cluster& cluster_;
  const std::uint32_t group_, rank_, nranks_;
  const std::string host_;
  std::shared_ptr<const std::vector<Call>> calls_;
  std::mt19937_64 random_;
  std::unique_ptr<SimGroupService> service_;
  std::unique_ptr<TwoWays> ways_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<client::Communicator> communicator_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::map<std::size_t, std::shared_ptr<SlowMemory>> slow_;  // for each call under way, by number
  std::shared_ptr<DistantDevice> distant_;
  transport::TimePoint distant_at_{};
  client::Factors factors_;
  std::size_t next_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t completed_ = 0;
  transport::TimePoint next_call_at_{};
  bool ready_ = false;
  bool finalizing_ = false;
  bool finalized_ = false;
  std::optional<Error> failed_;
};

}  // namespace tributary::simulation

#pragma once
// The manager of a simulated cluster.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/channel.h"

namespace tributary::simulation {

class Cluster;

/// Plans trees of 1 to 3 levels over the aggregators that are alive, signs their tokens, and forgets groups that do not
/// renew their lease. Like any process it may stand still; it then answers the requests afterwards.
class SimManager {
 public:
  SimManager(Cluster& cluster, std::uint64_t seed);
  /// Runs a request at once, or, if the process stands still, when it goes on.
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
  bool silent = false;                                  // true: it takes requests, but answers none
  std::vector<std::vector<std::string>> told_failed{};  // for each plan: the failed aggregators in its request
  std::uint32_t refuse_percent = 0;                     // percent of the requests to refuse
  std::optional<std::uint32_t> levels;                  // levels of each tree; nullopt: random
  /// The most children of an aggregator, in trees over the first aggregators that live; nullopt: random trees with
  /// `levels` levels.
  std::optional<std::uint32_t> fan_out;
  std::uint64_t next_group = 1;
  std::uint64_t plans = 0;      // requests for a plan
  std::uint64_t moves = 0;      // number of `plans` for groups that had trees
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
    std::vector<std::size_t> leaf_of;    // by rank
    std::vector<std::uint32_t> seat_of;  // by rank: its child number at its leaf
  };
  /// One lane during the planning.
  struct Draft {
    std::uint64_t group;
    std::uint32_t epoch, lane, nranks, window;
    Shape shape;
  };
  [[nodiscard]] Shape draw(std::uint32_t nranks, const std::vector<std::uint32_t>& usable);
  [[nodiscard]] Shape whole(std::uint32_t nranks, const std::vector<std::uint32_t>& usable) const;
  /// Gives each rank its place at its leaf.
  static void seat_ranks(Shape& shape);
  [[nodiscard]] const std::string& host(const Draft& draft, std::size_t node) const;
  [[nodiscard]] Token sign(const Draft& draft, std::size_t node, ChildKind kind, std::uint32_t child,
                           std::uint32_t rank) const;
  [[nodiscard]] LaneEntry entry_of(const Draft& draft, std::uint32_t rank) const;

  Cluster& cluster_;
  std::mt19937_64 random_;
  std::mt19937_64 lanes_;  // random numbers for weights and windows
  SigningKey key_;
  TokenVerifier verifier_;
  std::map<std::uint64_t, transport::TimePoint> leases_;  // by group: the end of its lease
  bool paused_ = false;
  transport::TimePoint paused_at_{};
  std::vector<std::function<void()>> waiting_;
};

}  // namespace tributary::simulation

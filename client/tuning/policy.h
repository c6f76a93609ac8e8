#pragma once
// The policy of one group: for each collective and each size, the path of an operation. Rank 0 makes the policy and
// sends it with the welcome. It contains only whole numbers, so that every rank makes the same decision.
#include <array>
#include <string>
#include <vector>

#include "client/tuning/cost_model.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::tuning {

struct Table;

struct Step {
  std::uint64_t bytes_max = UINT64_MAX;  // bytes of the whole vector
  Path path = Path::tree;
  // The algorithm between the ranks, by choice or if there is no tree. Exact sums have only one way, and do not use it.
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t tree_share = 0;  // for Path::split: the trees' share, above 0 and below kWholeShare
  friend bool operator==(const Step&, const Step&) = default;
};
/// The steps in ascending order of their sizes; the last step has no limit.
using Steps = std::vector<Step>;

/// Facts about a group that rank 0 knows.
struct GroupShape {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_host = 1;  // the most ranks that share a host's cores
  bool one_host = false;             // all ranks are on one host: they have no link between them
  std::uint64_t link_rate = 0;       // rate of the slowest host's link, in bits per second; 0: not known
  bool leaders = false;              // each rank acts for the ranks of its host
  double staging_gbytes = 0;         // see Figures
  bool exact = false;                // the group's sums of floats are exact, so its reductions cost more
};

class Policy {
 public:
  /// Makes the default policy, which holds before the ranks have met: a tree for every operation, and between the ranks
  /// the cost model's choice for a group on one host.
  Policy();
  explicit Policy(std::array<Steps, kCollectiveCount> steps) : steps_(std::move(steps)) {}

  [[nodiscard]] const Step& at(Collective collective, std::uint64_t vector_bytes) const noexcept;
  [[nodiscard]] const Steps& steps(Collective collective) const noexcept {
    return steps_[static_cast<std::size_t>(collective)];
  }
  friend bool operator==(const Policy&, const Policy&) = default;

 private:
  std::array<Steps, kCollectiveCount> steps_;
};

/// A step that replaces a policy's steps for some sizes of one collective, as long as the same trees are in use.
struct Amendment {
  Collective collective = Collective::all_reduce;
  std::uint64_t above = 0;  // the step holds for vectors of more bytes than this, up to step.bytes_max
  Step step;
  friend bool operator==(const Amendment&, const Amendment&) = default;
};
[[nodiscard]] Policy amended(const Policy& policy, const Amendment& amendment);
/// Returns the text that an `amended` frame carries (docs/protocol.md).
[[nodiscard]] std::string encode(const Amendment& amendment);
/// Reads the text of an amendment. Errc::corrupt says what is wrong with the text.
[[nodiscard]] Result<Amendment> decode_amendment(const std::string& text);

/// Returns a policy with a tree for every operation, if there is one.
[[nodiscard]] Policy trees_always(const GroupShape& shape);
/// Returns the policy by the table's rules for this group and, where no rule holds, by the cost model with the table's
/// figures.
[[nodiscard]] Policy policy_of(const Table& table, const GroupShape& shape);
/// Returns whether a rate of `a` and the same rate of `b` differ so much that the policy for `a` does not suit `b`.
[[nodiscard]] bool differ(const PathRates& a, const PathRates& b) noexcept;
/// Returns the policy by the built-in figures, for this group on hosts with this many cores.
[[nodiscard]] Policy default_policy(const GroupShape& shape, std::uint32_t cores);
[[nodiscard]] Figures default_figures(const GroupShape& shape, std::uint32_t cores) noexcept;

/// The facts about the trees in use that decide the choice.
struct TreeShape {
  PathRates rates{};
  std::uint32_t lanes = 1;
  std::uint32_t lane_cycle = 1;     // see Figures
  double lightest_lane = 0;         // see Figures
  double heaviest_lane = 0;         // see Figures
  std::uint32_t levels = 0;         // 0: not known
  std::uint32_t segment_bytes = 0;  // 0: not known
};
[[nodiscard]] TreeShape shape_of(const GroupDescriptor& trees) noexcept;

/// Returns the figures for the time in which these trees are in use: facts about the trees replace assumed figures.
[[nodiscard]] Figures with_trees(Figures figures, const TreeShape& trees);
/// Return the policy for the time in which these trees are in use: facts about the trees replace assumed figures.
[[nodiscard]] Policy policy_of(const Table& table, const GroupShape& shape, const TreeShape& trees);
[[nodiscard]] Policy default_policy(const GroupShape& shape, std::uint32_t cores, const TreeShape& trees);
/// Returns the cost model's own choices with these figures.
[[nodiscard]] Policy model_policy(const Figures& figures, std::uint32_t ranks);

/// Returns the cost model's own choice for one collective.
[[nodiscard]] Steps model_steps(const Figures& figures, Collective collective, std::uint32_t ranks);

/// Returns the text that the welcome carries (docs/protocol.md).
[[nodiscard]] std::string encode(const Policy& policy);
/// Reads the text of a policy. Errc::corrupt says what is wrong with the text.
[[nodiscard]] Result<Policy> decode_policy(const std::string& text);

}  // namespace tributary::tuning

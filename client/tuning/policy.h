#pragma once
// The policy of one group: for each collective, the path that an operation of a given size takes. Rank 0 makes it and
// sends it with the welcome. It holds whole numbers alone, so that every rank decides alike.
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
  Algorithm algorithm = Algorithm::ring;  // between the ranks: by choice, or if there is no tree
  std::uint32_t tree_share = 0;           // for Path::split: of kWholeShare, more than 0 and less than that
  friend bool operator==(const Step&, const Step&) = default;
};
/// The steps by size, ascending; the last one has no limit.
using Steps = std::vector<Step>;

/// A group, as rank 0 sees it.
struct GroupShape {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_host = 1;  // at most: ranks that share cores
  bool one_host = false;             // no link between any two ranks
  std::uint64_t link_rate = 0;       // rate of the slowest host's link, in bits per second; 0: not known
};

class Policy {
 public:
  /// Default policy, which holds before the ranks have met: a tree for every operation; between the ranks, the cost
  /// model's choice for a group on one host.
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

/// A step that replaces a policy's steps for some sizes of one collective, while the trees in use stay.
struct Amendment {
  Collective collective = Collective::all_reduce;
  std::uint64_t above = 0;  // for vectors of more bytes than this, up to step.bytes_max
  Step step;
  friend bool operator==(const Amendment&, const Amendment&) = default;
};
[[nodiscard]] Policy amended(const Policy& policy, const Amendment& amendment);
/// The text that an amended frame carries: docs/protocol.md.
[[nodiscard]] std::string encode(const Amendment& amendment);
/// Errc::corrupt says what is wrong with the text.
[[nodiscard]] Result<Amendment> decode_amendment(const std::string& text);

/// Returns a policy with a tree for every operation, if there is one.
[[nodiscard]] Policy trees_always(const GroupShape& shape);
/// Returns the table's rules for this group and, where no rule holds, the cost model's choice with the table's figures.
[[nodiscard]] Policy policy_of(const Table& table, const GroupShape& shape);
/// Returns the policy from the built-in figures, for this group on hosts with this many cores.
[[nodiscard]] Policy default_policy(const GroupShape& shape, std::uint32_t cores);
[[nodiscard]] Figures default_figures(const GroupShape& shape, std::uint32_t cores) noexcept;

/// Trees in use, as far as the choice depends on them.
struct TreeShape {
  PathRates rates{};
  std::uint32_t lanes = 1;
  double lightest_lane = 0;         // as in Figures
  std::uint32_t levels = 0;         // 0: not known
  std::uint32_t segment_bytes = 0;  // 0: not known
};
[[nodiscard]] TreeShape shape_of(const GroupDescriptor& trees) noexcept;

/// Return the figures while these trees are in use: facts about the trees take the place of what was assumed.
[[nodiscard]] Figures with_trees(Figures figures, const TreeShape& trees);
/// Return the policy while these trees are in use: facts about the trees replace the figures that stand for them.
[[nodiscard]] Policy policy_of(const Table& table, const GroupShape& shape, const TreeShape& trees);
[[nodiscard]] Policy default_policy(const GroupShape& shape, std::uint32_t cores, const TreeShape& trees);

/// Returns the cost model's own choice for one collective.
[[nodiscard]] Steps model_steps(const Figures& figures, Collective collective, std::uint32_t ranks);

/// The text that the welcome carries: docs/protocol.md.
[[nodiscard]] std::string encode(const Policy& policy);
/// Errc::corrupt says what is wrong with the text.
[[nodiscard]] Result<Policy> decode_policy(const std::string& text);

}  // namespace tributary::tuning

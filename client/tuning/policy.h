#pragma once
// What one group has agreed on: for each collective, up to which size an operation takes which path. Whole numbers
// alone, so that every rank decides alike: rank 0 makes it, and sends it with the welcome.
#include <array>
#include <string>
#include <vector>

#include "client/tuning/cost_model.h"
#include "tributary/protocol/error.h"

namespace tributary::tuning {

struct Table;

struct Step {
  std::uint64_t bytes_max = UINT64_MAX;  // of the whole vector
  Path path = Path::tree;
  Algorithm algorithm = Algorithm::ring;  // between the ranks: by choice, or where there is no such path
  friend bool operator==(const Step&, const Step&) = default;
};
/// By size, ascending; the last one has no limit.
using Steps = std::vector<Step>;

/// A group, as rank 0 sees it.
struct GroupShape {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_host = 1;  // at most: ranks that share cores
  bool one_host = false;             // no link between any two ranks
};

class Policy {
 public:
  /// A tree for every operation, and between the ranks what the cost model says of a group on one host: what holds
  /// before the ranks have met.
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

/// A tree wherever there is one, whatever the operation.
[[nodiscard]] Policy trees_always(const GroupShape& shape);
/// What the table's rules say of this group, and, where they are silent, the cost model with the table's figures.
[[nodiscard]] Policy policy_of(const Table& table, const GroupShape& shape);
/// The built-in figures, for this group and so many cores.
[[nodiscard]] Policy default_policy(const GroupShape& shape, std::uint32_t cores);
[[nodiscard]] Figures default_figures(const GroupShape& shape, std::uint32_t cores) noexcept;

/// What the cost model alone says of one collective.
[[nodiscard]] Steps model_steps(const Figures& figures, Collective collective, std::uint32_t ranks);

/// As the welcome carries it: docs/protocol.md.
[[nodiscard]] std::string encode(const Policy& policy);
/// Errc::corrupt says what is wrong with it.
[[nodiscard]] Result<Policy> decode_policy(const std::string& text);

}  // namespace tributary::tuning

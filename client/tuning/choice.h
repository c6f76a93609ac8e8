#pragma once
// The choice of a class of sizes: a path, and the share of a split.
#include <cstdint>

#include "client/tuning/cost_model.h"

namespace tributary::tuning {

/// A path and, for a split, the share of the trees.
struct Choice {
  Path path = Path::tree;
  std::uint32_t tree_share = 0;  // out of kWholeShare; only for Path::split
  friend bool operator==(const Choice&, const Choice&) = default;
};

}  // namespace tributary::tuning

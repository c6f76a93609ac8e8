#pragma once
// Divides an operation between the trees and the ranks' own path, which then work at the same time.
//
// The trees carry the first segments of the operation, and the ranks carry the rest. The division is a pure function of
// the call and of the terms of one generation of trees, so every rank divides in the same way. The policy chooses the
// algorithm of the ranks' part as for a call of that many bytes. (Y. Jiang et al., "A Unified Architecture for
// Accelerating Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI 2020: if the aggregators' links
// together are slower than the ranks' links, such a division takes the least possible time.)
#include <cstdint>
#include <optional>

#include "client/collectives/fallback/strand.h"
#include "client/operation/operation.h"
#include "client/tuning/policy.h"

namespace tributary::client {

/// The facts of one generation of trees that decide how an operation is divided.
struct DivisionTerms {
  const tuning::Policy* policy = nullptr;
  std::uint32_t nranks = 1;
  std::uint32_t segment_bytes = 1;
  std::uint32_t lanes = 1;
  std::uint32_t cycle = 1;  // places in a cycle of the dealing (client/operation/dealing.h)
};

struct Division {
  bool by_trees = true;    // trees carry the whole operation, or its first segments
  std::optional<Cut> cut;  // set if the ranks carry the rest; neither part is then empty
  schedule::Algorithm algorithm = schedule::Algorithm::ring;  // algorithm of ranks that carry the whole operation
};

[[nodiscard]] Division divide(const Operation& operation, const DivisionTerms& terms);

/// Return the two parts of an operation that is cut at `cut`, as collectives of their own.
[[nodiscard]] Piece trees_part(const Operation& operation, const Cut& cut);
[[nodiscard]] Piece ranks_part(const Operation& operation, const Cut& cut);

}  // namespace tributary::client

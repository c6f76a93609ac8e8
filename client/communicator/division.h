#pragma once
// Divides an operation between the trees and the ranks' own path, which then work at the same time.
//
// The trees carry the first segments of the operation, the ranks the rest of it. The division is a pure function of the
// call and of the terms of one generation of trees, so every rank divides alike. So is the algorithm of the ranks' part:
// the policy's for a call of that many bytes. (Y. Jiang et al., "A Unified
// Architecture for Accelerating Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI 2020: where the
// aggregators' links together are narrower than the ranks', such a division takes the least time that is possible.)
#include <cstdint>
#include <optional>

#include "client/collectives/fallback/strand.h"
#include "client/operation/operation.h"
#include "client/tuning/policy.h"

namespace tributary::client {

/// The facts of one generation of trees that decide about an operation.
struct DivisionTerms {
  const tuning::Policy* policy = nullptr;
  std::uint32_t nranks = 1;
  std::uint32_t segment_bytes = 1;
  std::uint32_t lanes = 1;
  std::uint32_t cycle = 1;  // of the dealing of segments to lanes
};

struct Division {
  bool by_trees = true;    // trees carry all of it, or its first segments
  std::optional<Cut> cut;  // set if the ranks carry the rest; then neither part is empty
  schedule::Algorithm algorithm = schedule::Algorithm::ring;  // of the ranks, if they carry all of it
};

[[nodiscard]] Division divide(const Operation& operation, const DivisionTerms& terms);

/// Return the two parts of an operation that is cut at `cut`, as collectives of their own.
[[nodiscard]] Piece trees_part(const Operation& operation, const Cut& cut);
[[nodiscard]] Piece ranks_part(const Operation& operation, const Cut& cut);

}  // namespace tributary::client

#pragma once
// The part of an operation that a lost tree has left undone.
#include <functional>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/operation/operation.h"

namespace tributary::client {

struct Remainder {
  std::vector<Piece> pieces;   // in order; those with one owner that touch are one
  std::uint64_t segments = 0;  // of the operation's
};

/// The segments whose sequences no rank has a result for, the same on every rank. `lanes`: all of the lost trees;
/// `everyones(lane)`: results below are everyone's.
[[nodiscard]] Remainder remainder_of(const Operation& operation, const Segmentation& segmentation,
                                     const std::vector<LaneLink*>& lanes, std::uint32_t rank,
                                     const std::function<std::uint64_t(std::size_t)>& everyones);

}  // namespace tributary::client

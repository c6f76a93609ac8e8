#pragma once
// The part of an operation that a lost tree has left undone.
#include <functional>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/operation/operation.h"

namespace tributary::client {

struct Remainder {
  std::vector<Piece> pieces;   // in order; adjacent pieces with one owner are joined
  std::uint64_t segments = 0;  // the number of the operation's segments in the pieces
};

/// Returns the segments for whose sequences no rank has a result; the same on every rank. `lanes`: all lanes of the
/// lost trees; every rank has the results below `everyones(lane)`.
[[nodiscard]] Remainder remainder_of(const Operation& operation, const Segmentation& segmentation,
                                     const std::vector<LaneLink*>& lanes, std::uint32_t rank,
                                     const std::function<std::uint64_t(std::size_t)>& everyones);

}  // namespace tributary::client

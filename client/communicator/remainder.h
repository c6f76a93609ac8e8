#pragma once
// The part of an operation that a lost tree did not finish.
#include <functional>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/operation/operation.h"

namespace tributary::client {

struct Remainder {
  std::vector<Piece> pieces;   // in order; neighbouring segments with one owner are joined
  std::uint64_t segments = 0;  // number of segments in the pieces
};

/// Returns the segments for whose sequences no rank has a result; all ranks return the same segments. `lanes`: all
/// lanes of the lost trees; every rank has the lane's results below sequence `everyones(lane)`.
[[nodiscard]] Remainder remainder_of(const Operation& operation, const Segmentation& segmentation,
                                     const std::vector<LaneLink*>& lanes, std::uint32_t rank,
                                     const std::function<std::uint64_t(std::size_t)>& everyones);

}  // namespace tributary::client

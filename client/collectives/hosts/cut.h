#pragma once
// Cuts a call of ranks on several hosts into pieces. Each piece goes through its stages by itself, so that stages of
// different pieces overlap. The cut is a pure function of the call: all ranks cut at the same places without a message.
//
// Four kinds of pieces carry all collectives: all_reduce, reduce, broadcast, barrier. reduce_scatter is a reduce for
// each rank's part, all_gather a broadcast.
#include <cstdint>

#include "client/operation/segmentation.h"

namespace tributary::client::hosts {

struct Piece {
  Collective kind = Collective::barrier;
  Segment segment{};  // a segment of the call's long vector; its owner gets it (reduce) or has it (broadcast)
  /// True: the piece is a barrier that stands for the whole call. Its tag shows the ranks when their calls differ in
  /// something that no piece contains, such as the length of the whole vector.
  bool announces = false;
};

/// Returns a tag. Two different calls have equal tags only in one of four thousand million pairs of calls.
[[nodiscard]] std::uint32_t tag_of(const Signature& signature) noexcept;

class Cut {
 public:
  /// `of_host`: the number of ranks on the largest host. A leader gathers their inputs for an exact sum, so pieces are
  /// shorter on large hosts.
  Cut(const Signature& signature, std::uint32_t ranks, std::uint32_t of_host = 1) noexcept;

  [[nodiscard]] std::uint64_t pieces() const noexcept { return (announces_ ? 1 : 0) + parts_ * pieces_of_part_; }
  [[nodiscard]] Piece at(std::uint64_t index) const noexcept;

  /// Returns whether ranks on several hosts run this collective in stages.
  [[nodiscard]] static constexpr bool can(Collective collective) noexcept { return in_network_capable(collective); }

 private:
  Collective kind_;
  std::uint32_t root_;
  bool announces_;
  std::uint64_t count_;           // elements of a part
  std::uint64_t parts_ = 1;       // number of parts: the long vector has one for each rank
  std::uint64_t pieces_of_part_;  // at least 1
  std::uint64_t elements_;        // elements of a full piece
};

}  // namespace tributary::client::hosts

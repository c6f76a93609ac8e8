#include "client/communicator/remainder.h"

#include <algorithm>

namespace tributary::client {

namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

/// Returns one segment as a collective between the ranks.
Piece piece_of(const Operation& o, const Segment& segment, std::uint32_t rank) {
  const Collective collective = o.signature.collective;
  const Pattern pattern = pattern_of(collective);
  const bool mine = pattern == Pattern::all_to_all_ranks || segment.owner == rank;
  Piece piece;
  piece.root = segment.owner;
  piece.count = segment.count;
  if (pattern == Pattern::one_to_all) {
    piece.collective = Collective::broadcast;
    piece.send = mine ? o.input_of(segment) : nullptr;
    piece.recv = o.result_of(segment);
  } else {
    piece.collective = pattern == Pattern::all_to_one ? Collective::reduce : collective;
    piece.send = o.input_of(segment);
    piece.recv = mine ? o.result_of(segment) : nullptr;
  }
  piece.in_place = piece.send == piece.recv;
  return piece;
}

std::vector<std::uint64_t> segments_left(const Operation& o, const std::vector<LaneLink*>& lanes,
                                         const std::function<std::uint64_t(std::size_t)>& everyones) {
  std::vector<std::uint64_t> left;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (std::uint64_t s = lanes[lane]->first_unfinished(o, everyones(lane)); s < o.segments;
         s = lanes[lane]->turns().after(o.number, s))
      left.push_back(s);
  }
  std::ranges::sort(left);
  return left;
}

}  // namespace

Remainder remainder_of(const Operation& o, const Segmentation& segmentation, const std::vector<LaneLink*>& lanes,
                       std::uint32_t rank, const std::function<std::uint64_t(std::size_t)>& everyones) {
  const auto left = segments_left(o, lanes, everyones);
  Remainder remainder{.pieces = {}, .segments = left.size()};
  if (left.empty()) return remainder;
  if (left.size() == o.segments && o.segments == o.segments_all) {
    remainder.pieces.push_back(whole(o));
    return remainder;
  }
  std::uint64_t end = kNone;  // the first element after the last piece
  for (const std::uint64_t index : left) {
    const Segment segment = segmentation.at(index);
    if (segment.offset == end && remainder.pieces.back().root == segment.owner) {
      remainder.pieces.back().count += segment.count;
    } else {
      remainder.pieces.push_back(piece_of(o, segment, rank));
    }
    end = segment.offset + segment.count;
  }
  return remainder;
}

}  // namespace tributary::client

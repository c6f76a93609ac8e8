#include "client/communicator/division.h"

#include <algorithm>

#include "client/collectives/fallback/runner.h"
#include "client/tuning/tree_segments.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {
namespace {

Piece range(const Operation& o, std::uint64_t begin, std::uint64_t end) {
  TRIBUTARY_ASSERT(begin < end && end <= o.signature.count, "elements {} to {} of {}", begin, end, to_string(o));
  Piece piece = whole(o);
  if (piece.send != nullptr) piece.send += begin * o.element_bytes();
  if (piece.recv != nullptr) piece.recv += begin * o.element_bytes();
  piece.count = end - begin;
  return piece;
}

}  // namespace

Division divide(const Operation& o, const DivisionTerms& terms) {
  const Collective collective = o.signature.collective;
  const std::uint64_t bytes =
      std::max(o.part_of_bytes, amount_in_all(collective, o.signature.count * o.element_bytes(), terms.nranks));
  const tuning::Step& step = terms.policy->at(collective, bytes);
  if (step.path != tuning::Path::split || !tuning::can_split(collective))
    return {.by_trees = step.path != tuning::Path::ranks, .algorithm = step.algorithm};
  const Segmentation segmentation(o.signature, terms.nranks, terms.segment_bytes);
  const std::uint64_t segments = segmentation.segments();
  TRIBUTARY_ASSERT(terms.lanes > 0 && terms.cycle >= terms.lanes, "a tree path of {} lanes, dealt in a cycle of {}",
                   terms.lanes, terms.cycle);
  const std::uint64_t ours = tuning::tree_segments(segments, step.tree_share, terms.lanes, terms.cycle);
  if (ours == 0) return {.by_trees = false, .algorithm = step.algorithm};
  if (ours >= segments) return {.by_trees = true};
  const std::uint64_t element = segmentation.at(ours).offset;
  const std::uint64_t theirs =
      amount_in_all(collective, (o.signature.count - element) * o.element_bytes(), terms.nranks);
  return {
      .by_trees = true,
      .cut = Cut{.segments = ours, .element = element, .algorithm = terms.policy->at(collective, theirs).algorithm}};
}

Piece trees_part(const Operation& o, const Cut& cut) {
  return range(o, 0, cut.element);
}

Piece ranks_part(const Operation& o, const Cut& cut) {
  Piece piece = range(o, cut.element, o.signature.count);
  piece.algorithm = cut.algorithm;
  return piece;
}

}  // namespace tributary::client

#include "client/cli/perf/checked_call.h"

#include <algorithm>
#include <cstring>

#include "client/cli/perf/exact_pattern.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

constexpr int kNothing = 0xA5;  // no right result has this byte at all places

std::uint32_t rank_before(const CallShape& shape) {
  return (shape.rank + shape.ranks - 1) % shape.ranks;
}

/// True if this rank receives the other rank's contribution as it is, without a reduction.
bool sees(const CallShape& shape, std::uint32_t other) {
  switch (shape.collective) {
    case PerfCollective::all_gather:
    case PerfCollective::all_to_all:
      return true;
    case PerfCollective::gather:
      return shape.rank == shape.root;
    case PerfCollective::broadcast:
    case PerfCollective::scatter:
      return other == shape.root;
    case PerfCollective::sendrecv:
      return other == rank_before(shape);
    default:
      return false;
  }
}

}  // namespace

CallPlace place_call(const CallShape& shape, const PerfCounts& counts, bool in_place, std::byte* first,
                     std::byte* second) noexcept {
  if (!in_place) return {first, second};
  std::byte* part = second + shape.rank * counts.count * size_of(shape.dtype);
  const bool is_root = shape.rank == shape.root;
  switch (shape.collective) {
    case PerfCollective::all_gather:
      return {part, second};
    case PerfCollective::gather:
      return {is_root ? part : second, second};
    case PerfCollective::reduce_scatter:
      return {second, part};
    case PerfCollective::scatter:
      return {second, is_root ? part : second};
    default:
      return {second, second};
  }
}

CheckedCall::CheckedCall(const CallShape& shape) : shape_(shape), of_rank_(shape.ranks) {
  TRIBUTARY_ASSERT(shape.rank < shape.ranks && shape.root < shape.ranks, "rank {} and root {} of {} ranks", shape.rank,
                   shape.root, shape.ranks);
  if (shape.exact) {
    TRIBUTARY_ASSERT(reduces(shape.collective) && has_exact_pattern(shape.dtype, shape.op), "no exact sum of type {}",
                     shape.dtype);
    own_ = exact_contribution(shape.dtype, shape.rank);
    reduced_ = exact_reduced(shape.dtype, shape.op, shape.ranks);
    return;
  }
  const Pattern pattern(shape.dtype, shape.op, shape.ranks);
  own_ = pattern.contribution(shape.rank);
  if (reduces(shape.collective)) reduced_ = pattern.reduced();
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
    if (sees(shape, rank)) of_rank_[rank] = pattern.contribution(rank);
  }
}

PerfCall CheckedCall::at(const CallPlace& place, const PerfCounts& counts) const noexcept {
  return {.collective = shape_.collective,
          .send = place.send,
          .recv = place.recv,
          .count = counts.count,
          .dtype = static_cast<tributary_dtype>(shape_.dtype),
          .op = static_cast<tributary_op>(shape_.op),
          .root = static_cast<int>(shape_.root),
          .rank = static_cast<int>(shape_.rank),
          .ranks = static_cast<int>(shape_.ranks)};
}

void CheckedCall::fill_input(const CallPlace& place, const PerfCounts& counts, std::size_t begin) const {
  const std::size_t element = element_bytes();
  TRIBUTARY_ASSERT(own_.size() == kPatternPeriod * element, "a pattern of {} bytes for elements of {} bytes",
                   own_.size(), element);
  if (counts.recv != 0) std::memset(place.recv, kNothing, counts.recv * element);
  tile(own_, element, begin, {place.send, counts.send * element});
}

std::uint64_t CheckedCall::largest_error(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const {
  const bool scattered = shape_.collective == PerfCollective::reduce_scatter;
  const bool receives = shape_.collective != PerfCollective::reduce || shape_.rank == shape_.root;
  const std::size_t first = begin + (scattered ? shape_.rank * counts.count : 0);
  const std::size_t element = element_bytes();
  std::uint64_t largest = 0;
  for (std::size_t i = 0; receives && i < counts.count; ++i) {
    const std::byte* const right = reduced_.data() + (first + i) % kPatternPeriod * element;
    largest = std::max(largest, units_between(shape_.dtype, recv + i * element, right));
  }
  return largest;
}

std::uint64_t CheckedCall::wrong_elements(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const {
  const bool is_root = shape_.rank == shape_.root;
  const std::size_t own_part = begin + shape_.rank * counts.count;
  const auto wrong = [&](const std::vector<std::byte>& right, std::size_t first, std::size_t part) {
    const std::size_t element = element_bytes();
    return count_wrong(right, element, first, {recv + part * counts.count * element, counts.count * element});
  };
  const auto wrong_of_all = [&](std::size_t first) {
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) sum += wrong(of_rank_[rank], first, rank);
    return sum;
  };
  switch (shape_.collective) {
    case PerfCollective::all_reduce:
      return wrong(reduced_, begin, 0);
    case PerfCollective::reduce:
      return is_root ? wrong(reduced_, begin, 0) : 0;
    case PerfCollective::reduce_scatter:
      return wrong(reduced_, own_part, 0);
    case PerfCollective::broadcast:
      return wrong(of_rank_[shape_.root], begin, 0);
    case PerfCollective::scatter:
      return wrong(of_rank_[shape_.root], own_part, 0);
    case PerfCollective::sendrecv:
      return wrong(of_rank_[rank_before(shape_)], begin, 0);
    case PerfCollective::gather:
      return is_root ? wrong_of_all(begin) : 0;
    case PerfCollective::all_gather:
      return wrong_of_all(begin);
    case PerfCollective::all_to_all:
      return wrong_of_all(own_part);
    case PerfCollective::barrier:
      break;
  }
  return 0;
}

}  // namespace tributary::cli

#pragma once
// Cuts an operation into segments. This is a pure function of the call, so every rank cuts at the same places.
#include <algorithm>
#include <cstdint>

#include "tributary/protocol/collective.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::client {

/// A segment. `offset` and `count` are in elements of the collective's long vector: the whole vector for all_reduce,
/// reduce and broadcast; the chunks of all ranks, one after the other, for reduce_scatter and all_gather.
struct Segment {
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  // reduce_scatter, reduce: the rank that gets the segment; all_gather, broadcast: the rank that has it; else 0.
  std::uint32_t owner = 0;
};

/// Returns the bytes of a full segment of this call. In trees of several levels, and between hosts, a segment of an exact
/// sum is shorter: its partial sums must fit in the aggregators' buffers, whatever the values are. 0: trees cannot carry
/// the call, because not even one element fits, or because it is an ordered product.
[[nodiscard]] inline std::uint32_t segment_bytes_of(const Signature& signature, std::uint32_t segment_bytes,
                                                    bool one_level) noexcept {
  if (signature.op == kOrderedProduct && row_of(signature.collective).reduces) return 0;
  const bool has_forms = is_exact_of_hosts(signature.op) || (is_exact(signature.op) && !one_level);
  if (!has_forms || !row_of(signature.collective).reduces) return segment_bytes;
  constexpr std::size_t kRound = 64;  // keeps segments at whole cache lines
  const std::size_t elements = form_segment_elements(signature.dtype, segment_bytes);
  return static_cast<std::uint32_t>((elements < kRound ? elements : elements - elements % kRound) *
                                    size_of(signature.dtype));
}

class Segmentation {
 public:
  Segmentation(const Signature& signature, std::uint32_t nranks, std::uint32_t segment_bytes)
      : count_(signature.count),
        elements_(signature.collective == Collective::barrier
                      ? 1
                      : std::max<std::uint64_t>(1, segment_bytes / size_of(signature.dtype))),
        per_chunk_(std::max<std::uint64_t>(1, (count_ + elements_ - 1) / elements_)),
        chunks_(
            (signature.collective == Collective::reduce_scatter || signature.collective == Collective::all_gather) &&
                    count_ > 0
                ? nranks
                : 1),
        root_(signature.collective == Collective::reduce || signature.collective == Collective::broadcast
                  ? signature.root
                  : 0) {}

  /// Returns the number of segments, at least 1: an operation without data is one bare segment, which proves that every
  /// rank called the operation.
  [[nodiscard]] std::uint64_t segments() const noexcept { return per_chunk_ * chunks_; }

  [[nodiscard]] Segment at(std::uint64_t index) const noexcept {
    const std::uint64_t chunk = index / per_chunk_;
    const std::uint64_t begin = (index % per_chunk_) * elements_;
    return {chunk * count_ + begin, static_cast<std::uint32_t>(std::min(elements_, count_ - begin)),
            chunks_ > 1 ? static_cast<std::uint32_t>(chunk) : root_};
  }

 private:
  std::uint64_t count_;
  std::uint64_t elements_;   // elements of a full segment
  std::uint64_t per_chunk_;  // segments of a chunk
  std::uint64_t chunks_;
  std::uint32_t root_;
};

}  // namespace tributary::client

#pragma once
// How an operation is cut into segments. A pure function of what was called, so that every rank cuts alike.
#include <algorithm>
#include <cstdint>

#include "tributary/protocol/frame.h"

namespace tributary::client {

/// `offset` and `count` in elements of the collective's long vector: the whole one for all_reduce, reduce and
/// broadcast; the nranks chunks one after the other for reduce_scatter and all_gather.
struct Segment {
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  std::uint32_t owner = 0;  // reduce_scatter, reduce: who gets it. all_gather, broadcast: who has it. else 0
};

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

  /// At least 1: an operation without data is one bare segment, so that it too proves that everyone came.
  [[nodiscard]] std::uint64_t segments() const noexcept { return per_chunk_ * chunks_; }

  [[nodiscard]] Segment at(std::uint64_t index) const noexcept {
    const std::uint64_t chunk = index / per_chunk_;
    const std::uint64_t begin = (index % per_chunk_) * elements_;
    return {chunk * count_ + begin, static_cast<std::uint32_t>(std::min(elements_, count_ - begin)),
            chunks_ > 1 ? static_cast<std::uint32_t>(chunk) : root_};
  }

 private:
  std::uint64_t count_;
  std::uint64_t elements_;   // of a full segment
  std::uint64_t per_chunk_;  // segments
  std::uint64_t chunks_;
  std::uint32_t root_;
};

/// Which contributions and which results of a collective carry data (architecture.md: three patterns carry every
/// collective).
enum class Pattern : std::uint8_t { all_to_all_ranks, all_to_one, one_to_all, nothing };
[[nodiscard]] constexpr Pattern pattern_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::all_reduce:
      return Pattern::all_to_all_ranks;
    case Collective::reduce:
    case Collective::reduce_scatter:
      return Pattern::all_to_one;
    case Collective::broadcast:
    case Collective::all_gather:
      return Pattern::one_to_all;
    default:
      return Pattern::nothing;
  }
}
/// The others go directly between ranks: nothing can be reduced.
[[nodiscard]] constexpr bool in_network_capable(Collective collective) noexcept {
  return collective == Collective::barrier || pattern_of(collective) != Pattern::nothing;
}

}  // namespace tributary::client

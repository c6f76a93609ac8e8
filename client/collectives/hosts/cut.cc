#include "client/collectives/hosts/cut.h"

#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client::hosts {

namespace {

// A piece should be long, because each piece costs the network's latency. It should also be much shorter than the whole
// call, because the first piece's way up and the last piece's way down overlap with no other stage.
constexpr std::uint64_t kPieceBytesMin = std::uint64_t{256} << 10;
constexpr std::uint64_t kPieceBytesMax = std::uint64_t{4} << 20;
constexpr std::uint64_t kPiecesWanted = 16;
constexpr std::uint64_t kGrainBytes = std::uint64_t{16} << 10;

constexpr std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) noexcept {
  return (a + b - 1) / b;
}

/// Returns the collective that carries each piece of this call. A piece has one owner.
Collective kind_of(Collective collective) noexcept {
  switch (pattern_of(collective)) {
    case Pattern::all_to_one:
      return Collective::reduce;
    case Pattern::one_to_all:
      return Collective::broadcast;
    default:
      return collective;
  }
}

}  // namespace

// The hash is FNV-1a.
std::uint32_t tag_of(const Signature& s) noexcept {
  std::uint32_t hash = 2166136261U;
  const auto mix = [&hash](std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash ^= static_cast<std::uint8_t>(value >> shift);
      hash *= 16777619U;
    }
  };
  mix(static_cast<std::uint64_t>(s.collective) << 16 | static_cast<std::uint64_t>(s.dtype) << 8 |
      static_cast<std::uint64_t>(s.op));
  mix(s.root);
  mix(s.count);
  return hash;
}

Cut::Cut(const Signature& signature, std::uint32_t ranks, std::uint32_t of_host) noexcept
    : kind_(kind_of(signature.collective)),
      root_(signature.root),
      count_(signature.collective == Collective::barrier ? 0 : signature.count) {
  const std::uint64_t element = size_of(signature.dtype);
  if (kind_ != signature.collective && count_ > 0) parts_ = ranks;
  const std::uint64_t bytes = count_ * element;
  const std::uint64_t most =
      is_exact(signature.op) ? std::max(kPieceBytesMax / of_host, kPieceBytesMin) : kPieceBytesMax;
  const std::uint64_t wanted = std::clamp(bytes * parts_ / kPiecesWanted, kPieceBytesMin, most);
  pieces_of_part_ = std::max<std::uint64_t>(1, divided_up(bytes, wanted));
  const std::uint64_t grain = kGrainBytes / element;
  elements_ = divided_up(divided_up(count_, pieces_of_part_), grain) * grain;
  if (count_ > 0) pieces_of_part_ = divided_up(count_, elements_);
  TRIBUTARY_ASSERT(count_ == 0 || (pieces_of_part_ - 1) * elements_ < count_, "{} pieces of {} elements make {}",
                   pieces_of_part_, elements_, count_);
  // A single piece of the call's own collective shows the whole call, except for an average, which travels as a sum.
  announces_ = parts_ * pieces_of_part_ > 1 || kind_ != signature.collective || signature.op == ReduceOp::avg;
}

Piece Cut::at(std::uint64_t index) const noexcept {
  TRIBUTARY_ASSERT(index < pieces(), "piece {} of {}", index, pieces());
  if (announces_ && index-- == 0) return {.kind = Collective::barrier, .segment = {}, .announces = true};
  const std::uint64_t part = index / pieces_of_part_;
  const std::uint64_t begin = index % pieces_of_part_ * elements_;
  return {.kind = kind_,
          .segment = {part * count_ + begin, static_cast<std::uint32_t>(std::min(elements_, count_ - begin)),
                      parts_ > 1 ? static_cast<std::uint32_t>(part) : root_},
          .announces = false};
}

}  // namespace tributary::client::hosts

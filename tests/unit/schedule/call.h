#pragma once
// One collective call in a test: the ranks, the arrays, and the expected result, by a few lines of scalar code.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "client/schedule/schedule.h"

namespace tributary::schedule {

struct Call {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::uint32_t piece_elements = 7;
  ReduceOp op = ReduceOp::sum;
  std::vector<bool> in_place{};  // by rank
  bool exact = false;            // each element is reduced once
  std::uint64_t seed = 0;        // seed of the inputs and of the order of progress

  [[nodiscard]] Parameters at(std::uint32_t rank, std::uint32_t element_bytes) const {
    return {.collective = collective,
            .algorithm = algorithm,
            .ranks = ranks,
            .rank = rank,
            .root = root,
            .count = count,
            .element_bytes = element_bytes,
            .exact = exact,
            .piece_bytes = piece_elements * element_bytes,
            .in_place = in_place[rank]};
  }
  [[nodiscard]] std::string text() const {
    std::string places;
    for (const bool place : in_place) places += place ? 'i' : 'o';
    return std::string(exact ? "exact " : "") + std::string(to_string(collective)) + " by " + name(algorithm) +
           ", ranks " + std::to_string(ranks) + ", root " + std::to_string(root) + ", count " + std::to_string(count) +
           ", piece " + std::to_string(piece_elements) + ", " + std::string(to_string(op)) + ", in place " + places +
           ", seed " + std::to_string(seed);
  }
};

[[nodiscard]] inline bool rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

[[nodiscard]] inline bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

/// Returns the number of elements of the array that a rank passes to the API.
[[nodiscard]] inline std::uint64_t send_extent(const Call& call, std::uint32_t rank) {
  switch (call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return rank == call.root ? call.count : 0;
    case Collective::scatter:
      return rank == call.root ? call.count * call.ranks : 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return call.count * call.ranks;
    default:
      return call.count;
  }
}
[[nodiscard]] inline std::uint64_t recv_extent(const Call& call, std::uint32_t rank) {
  switch (call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::reduce:
      return rank == call.root ? call.count : 0;
    case Collective::gather:
      return rank == call.root ? call.count * call.ranks : 0;
    case Collective::all_gather:
    case Collective::all_to_all:
      return call.count * call.ranks;
    default:
      return call.count;
  }
}

[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// x -> scale x + shift, modulo 2^64. `+` is composition, which is associative but not commutative, so the result shows
/// the order of operands.
struct Affine {
  std::uint64_t scale = 1;
  std::uint64_t shift = 0;
  friend Affine operator+(const Affine& first, const Affine& second) {
    return {second.scale * first.scale, second.scale * first.shift + second.shift};
  }
  friend Affine operator/(const Affine& value, const Affine& /*divisor*/) { return value; }
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// An element that counts the ranks whose inputs it contains.
struct Counted {
  std::uint64_t ranks = 0;
  Counted() = default;
  explicit Counted(std::uint64_t number) : ranks(number) {}
  friend Counted operator+(const Counted& a, const Counted& b) { return Counted{a.ranks + b.ranks}; }
  friend Counted operator/(const Counted& value, const Counted& /*divisor*/) { return value; }
  friend bool operator==(const Counted&, const Counted&) = default;
};

/// Returns an input in which every element of every rank differs.
template <class T>
[[nodiscard]] T input(const Call& call, std::uint32_t rank, std::uint64_t index) {
  const std::uint64_t bits = mixed((call.seed + 1) * 0x9e3779b97f4a7c15U + (std::uint64_t{rank} << 32U) + index);
  if constexpr (std::is_same_v<T, Counted>) {
    return Counted{1};
  } else if constexpr (std::is_same_v<T, Affine>) {
    return {bits | 1U, mixed(bits)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63);
  } else {
    return static_cast<T>(static_cast<std::int64_t>(bits) >> 20);
  }
}

/// Returns the exact result, in Wide.
template <class T, class Wide>
[[nodiscard]] Wide expected(const Call& call, std::uint32_t rank, std::uint64_t index) {
  const auto sum_of = [&](std::uint64_t at) {
    Wide sum = 0;
    for (std::uint32_t from = 0; from < call.ranks; ++from) sum += static_cast<Wide>(input<T>(call, from, at));
    return call.op == ReduceOp::avg ? sum / static_cast<Wide>(call.ranks) : sum;
  };
  switch (call.collective) {
    case Collective::broadcast:
      return static_cast<Wide>(input<T>(call, call.root, index));
    case Collective::reduce_scatter:
      return sum_of(rank * call.count + index);
    case Collective::all_gather:
    case Collective::gather:
      return static_cast<Wide>(input<T>(call, static_cast<std::uint32_t>(index / call.count), index % call.count));
    case Collective::all_to_all:
      return static_cast<Wide>(
          input<T>(call, static_cast<std::uint32_t>(index / call.count), rank * call.count + index % call.count));
    case Collective::scatter:
      return static_cast<Wide>(input<T>(call, call.root, rank * call.count + index));
    default:
      return sum_of(index);
  }
}

}  // namespace tributary::schedule

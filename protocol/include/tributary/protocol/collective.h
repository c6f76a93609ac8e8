#pragma once
// The facts of each collective: one row that every part of the system reads.
//
// `count` below is Signature::count, the number of elements in the caller's argument: of the whole vector if every rank
// has all of it, else of one rank's part. The names and shapes come from NCCL and MPI.
#include <array>
#include <cstdint>
#include <limits>

#include "tributary/protocol/types.h"

namespace tributary {

/// The size of a buffer.
enum class Extent : std::uint8_t {
  none,      // the buffer is not used
  one,       // count elements
  per_rank,  // count elements for each rank, in the order of ranks
};

/// The ranks whose buffer has this size. Other ranks do not use their buffer.
enum class Holders : std::uint8_t { all, root };

/// The one way in which a rank's two buffers may overlap.
enum class InPlace : std::uint8_t {
  never,
  send_in_recv,  // send is recv, or this rank's part of it
  recv_in_send,  // recv is this rank's part of send
};

/// The way of data through a tree: it says which contributions and which results carry data.
enum class Pattern : std::uint8_t {
  all_to_all_ranks,  // every rank contributes; every rank gets the result
  all_to_one,        // every rank contributes; the segment's owner gets the result
  one_to_all,        // the segment's owner contributes; every rank gets the result
  nothing,           // the collective has no data, or a tree could not reduce them
};

struct CollectiveRow {
  Collective collective;
  Extent send;
  Holders senders;
  Extent recv;
  Holders receivers;
  InPlace in_place;
  bool reduces;  // it combines elements of several ranks into one element
  Pattern pattern;
  bool by_tree;  // trees carry it; other collectives go directly between ranks, because they reduce nothing
};

inline constexpr std::array<CollectiveRow, kCollectiveCount> kCollectives{{
    // The columns: collective, send, senders, recv, receivers, in place, reduces, pattern, by tree.
    {Collective::all_reduce, Extent::one, Holders::all, Extent::one, Holders::all, InPlace::send_in_recv, true,
     Pattern::all_to_all_ranks, true},
    {Collective::reduce, Extent::one, Holders::all, Extent::one, Holders::root, InPlace::send_in_recv, true,
     Pattern::all_to_one, true},
    {Collective::broadcast, Extent::one, Holders::root, Extent::one, Holders::all, InPlace::send_in_recv, false,
     Pattern::one_to_all, true},
    {Collective::reduce_scatter, Extent::per_rank, Holders::all, Extent::one, Holders::all, InPlace::recv_in_send, true,
     Pattern::all_to_one, true},
    {Collective::all_gather, Extent::one, Holders::all, Extent::per_rank, Holders::all, InPlace::send_in_recv, false,
     Pattern::one_to_all, true},
    {Collective::barrier, Extent::none, Holders::all, Extent::none, Holders::all, InPlace::never, false,
     Pattern::nothing, true},
    {Collective::all_to_all, Extent::per_rank, Holders::all, Extent::per_rank, Holders::all, InPlace::never, false,
     Pattern::nothing, false},
    {Collective::gather, Extent::one, Holders::all, Extent::per_rank, Holders::root, InPlace::send_in_recv, false,
     Pattern::nothing, false},
    {Collective::scatter, Extent::per_rank, Holders::root, Extent::one, Holders::all, InPlace::recv_in_send, false,
     Pattern::nothing, false},
}};

/// Returns the row of a collective. `collective` is an enumerator: decode() and the C API refuse other numbers.
[[nodiscard]] constexpr const CollectiveRow& row_of(Collective collective) noexcept {
  return kCollectives[static_cast<std::size_t>(collective)];
}
static_assert([] {
  for (std::size_t i = 0; i < kCollectives.size(); ++i) {
    if (static_cast<std::size_t>(kCollectives[i].collective) != i) return false;
  }
  return true;
}());

/// True if one rank, the root, has a special part in the collective.
[[nodiscard]] constexpr bool has_root(Collective collective) noexcept {
  return row_of(collective).senders == Holders::root || row_of(collective).receivers == Holders::root;
}
[[nodiscard]] constexpr Pattern pattern_of(Collective collective) noexcept {
  return row_of(collective).pattern;
}
[[nodiscard]] constexpr bool in_network_capable(Collective collective) noexcept {
  return row_of(collective).by_tree;
}

/// Returns the size of a buffer of this extent, in the unit of `amount`, which is the count in elements or in bytes.
/// 2^64 - 1 stands for all larger sizes, too.
[[nodiscard]] constexpr std::uint64_t amount_in(Extent extent, std::uint64_t amount, std::uint32_t ranks) noexcept {
  if (extent != Extent::per_rank) return extent == Extent::none ? 0 : amount;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return ranks != 0 && amount > kMost / ranks ? kMost : amount * ranks;
}
/// Returns the size of a rank's send buffer, in the unit of `count`; 0 if the rank has none.
[[nodiscard]] constexpr std::uint64_t amount_sent(Collective collective, std::uint64_t count, bool is_root,
                                                  std::uint32_t ranks) noexcept {
  const CollectiveRow& row = row_of(collective);
  return row.senders == Holders::all || is_root ? amount_in(row.send, count, ranks) : 0;
}
/// Returns the size of a rank's recv buffer, in the unit of `count`; 0 if the rank has none.
[[nodiscard]] constexpr std::uint64_t amount_received(Collective collective, std::uint64_t count, bool is_root,
                                                      std::uint32_t ranks) noexcept {
  const CollectiveRow& row = row_of(collective);
  return row.receivers == Holders::all || is_root ? amount_in(row.recv, count, ranks) : 0;
}
/// Returns the size of the whole vector, the larger of the two buffers: `count`, or `count` for each rank.
[[nodiscard]] constexpr std::uint64_t amount_in_all(Collective collective, std::uint64_t count,
                                                    std::uint32_t ranks) noexcept {
  const CollectiveRow& row = row_of(collective);
  return amount_in(row.send == Extent::per_rank ? row.send : row.recv, count, ranks);
}

}  // namespace tributary

#pragma once
// A rank for which the others of its group wait: an aggregator's word, which goes by the manager to rank 0.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tributary {

inline constexpr std::size_t kLateRanksMax = 64;  // number of late ranks that one message has at most

struct LateRank {
  std::uint64_t group = 0;
  std::uint32_t rank = 0;  // number of the member in its group
  std::string host{};  // its place in the topology; empty in an aggregator's word, because only the manager knows it
  std::chrono::milliseconds lag{};       // time from the first contribution to its own
  std::chrono::milliseconds late_for{};  // time since which it is late
  std::uint64_t operations_behind = 0;   // operations to which others have contributed and it has not
  friend bool operator==(const LateRank&, const LateRank&) = default;
};

/// Adds a late rank to `all`, which has each rank of each group once: of two words about one rank the worse counts. Words
/// about more than kLateRanksMax ranks are left out.
inline void add_late_rank(std::vector<LateRank>& all, const LateRank& late) {
  const auto same =
      std::ranges::find_if(all, [&](const LateRank& one) { return one.group == late.group && one.rank == late.rank; });
  if (same == all.end()) {
    if (all.size() < kLateRanksMax) all.push_back(late);
    return;
  }
  same->lag = std::max(same->lag, late.lag);
  same->late_for = std::max(same->late_for, late.late_for);
  same->operations_behind = std::max(same->operations_behind, late.operations_behind);
}

}  // namespace tributary

#pragma once
// A rank for which the others of its group wait: an aggregator's word, which goes by the manager to rank 0.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

inline constexpr std::size_t kLateRanksMax = 64;  // number of late ranks that one message has at most

/// The cause of the lateness: a guess of the aggregator, of rank 0, or of a rank of the same host.
enum class LateCause : std::uint8_t {
  unknown,
  late_call,
  slow_data,
  silent,
  no_cpu,
  lossy_link,
  not_called,
  device_errors
};
struct LateCauseRow {
  std::string_view name;  // in JSON
  std::string_view text;  // for people; empty: nothing to say
};
inline constexpr std::array<LateCauseRow, 8> kLateCauses{{{"unknown", ""},
                                                          {"late-call", "it begins its operations late"},
                                                          {"slow-data", "its data come slowly"},
                                                          {"silent", "nothing comes from it"},
                                                          {"no-cpu", "its thread waits for a processor"},
                                                          {"lossy-link", "its host sends packets again"},
                                                          {"not-called", "it has not called the operation"},
                                                          {"device-errors", "its network device counts errors"}}};
[[nodiscard]] constexpr const LateCauseRow& row_of(LateCause cause) noexcept {
  return kLateCauses[static_cast<std::size_t>(cause)];
}
/// Returns LateCause::unknown for a name that it does not know, which a later version may send.
[[nodiscard]] constexpr LateCause late_cause_from_string(std::string_view name) noexcept {
  const auto found = std::ranges::find(kLateCauses, name, &LateCauseRow::name);
  return found == kLateCauses.end() ? LateCause::unknown : static_cast<LateCause>(found - kLateCauses.begin());
}

struct LateRank {
  std::uint64_t group = 0;
  std::uint32_t rank = 0;  // number of the member in its group
  std::string host{};  // its place in the topology; empty in an aggregator's word, because only the manager knows it
  std::chrono::milliseconds lag{};       // time from the first contribution to its own
  std::chrono::milliseconds late_for{};  // time since which it is late
  std::uint64_t operations_behind = 0;   // operations to which others have contributed and it has not
  LateCause cause = LateCause::unknown;
  friend bool operator==(const LateRank&, const LateRank&) = default;
};

/// Adds a late rank to `all`, which has each rank of each group once: of two words about one rank the worse counts.
/// Words about more than kLateRanksMax ranks are left out.
inline void add_late_rank(std::vector<LateRank>& all, const LateRank& late) {
  const auto same =
      std::ranges::find_if(all, [&](const LateRank& one) { return one.group == late.group && one.rank == late.rank; });
  if (same == all.end()) {
    if (all.size() < kLateRanksMax) all.push_back(late);
    return;
  }
  if (late.lag > same->lag) same->cause = late.cause;
  same->lag = std::max(same->lag, late.lag);
  same->late_for = std::max(same->late_for, late.late_for);
  same->operations_behind = std::max(same->operations_behind, late.operations_behind);
}

}  // namespace tributary

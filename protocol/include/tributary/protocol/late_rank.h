#pragma once
// A rank for which the others of its group wait: an aggregator's word, which goes by the manager to rank 0.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

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

}  // namespace tributary

#pragma once
// The ranks of a communicator by host. Rank 0 makes the map and sends it to all other ranks, so all have the same map.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::client::hosts {

class HostMap {
 public:
  /// `host_of_rank`: the number of each rank's host. Hosts are numbered from 0 in the order of their first ranks.
  explicit HostMap(std::vector<std::uint32_t> host_of_rank);

  [[nodiscard]] std::uint32_t hosts() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(host_of_.size()); }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept { return host_of_[rank]; }
  /// Returns the ranks of a host, in ascending order.
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t host) const noexcept { return members_[host]; }
  /// Returns the rank that acts for its host.
  [[nodiscard]] std::uint32_t leader(std::uint32_t host) const noexcept { return members_[host].front(); }
  [[nodiscard]] bool leads(std::uint32_t rank) const noexcept { return leader(host_of(rank)) == rank; }
  [[nodiscard]] bool alone(std::uint32_t rank) const noexcept { return members(host_of(rank)).size() == 1; }
  /// Returns a rank's number among the ranks of its host; the leader's number is 0.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept { return place_of_[rank]; }
  [[nodiscard]] const std::vector<std::uint32_t>& by_rank() const noexcept { return host_of_; }

  /// Returns the number of ranks on the largest host.
  [[nodiscard]] std::uint32_t largest() const noexcept { return largest_; }

  /// True if there are several hosts, and one of them has several ranks: stages save traffic, because the sum of such a
  /// host travels once instead of several times.
  [[nodiscard]] bool worth_while() const noexcept;

 private:
  std::vector<std::uint32_t> host_of_, place_of_;    // by rank
  std::vector<std::vector<std::uint32_t>> members_;  // by host
  std::uint32_t largest_ = 0;
};

/// Makes the map. Ranks are on one host if they can share memory and have the same place in the topology. Equal tokens
/// show that ranks can share memory; an empty token equals no token. Both lists are by rank.
[[nodiscard]] HostMap find_hosts(std::span<const std::string> tokens, std::span<const std::string> places);
/// Returns the map as text: `each 8` if every host has 8 ranks with neighbouring numbers; `turns 4096` if ranks go in
/// turn to 4096 hosts. Any other map is a text such as `runs 0x8 1x4`: 8 neighbouring ranks on host 0, then 4 on host
/// 1. So the text is short if a rule placed the ranks.
[[nodiscard]] std::string encode(const HostMap& map);
/// Reads a map from its text. Errc::corrupt: the text is no map of this many ranks.
[[nodiscard]] Result<HostMap> decode_hosts(const std::string& text, std::uint32_t ranks);
/// Checks another rank's map. Errc::corrupt: `by_rank` belongs to no map of this many ranks.
[[nodiscard]] Result<HostMap> checked_hosts(std::vector<std::uint32_t> by_rank, std::uint32_t ranks);

}  // namespace tributary::client::hosts

#pragma once
// The ranks of a communicator by host. Rank 0 finds the map and tells all other ranks, so all ranks have the same map.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::client::hosts {

class HostMap {
 public:
  /// Takes the number of each rank's host, by rank. Hosts are numbered from 0 in the order of their first ranks.
  explicit HostMap(std::vector<std::uint32_t> host_of_rank);

  [[nodiscard]] std::uint32_t hosts() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(host_of_.size()); }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept { return host_of_[rank]; }
  /// Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t host) const noexcept { return members_[host]; }
  /// Returns the rank that acts for its host.
  [[nodiscard]] std::uint32_t leader(std::uint32_t host) const noexcept { return members_[host].front(); }
  [[nodiscard]] bool leads(std::uint32_t rank) const noexcept { return leader(host_of(rank)) == rank; }
  [[nodiscard]] bool alone(std::uint32_t rank) const noexcept { return members(host_of(rank)).size() == 1; }
  /// Returns a rank's number among the ranks of its host; the leader's is 0.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept { return place_of_[rank]; }
  [[nodiscard]] const std::vector<std::uint32_t>& by_rank() const noexcept { return host_of_; }

  /// Returns the number of ranks on the largest host.
  [[nodiscard]] std::uint32_t largest() const noexcept { return largest_; }

  /// True if there are several hosts, and one of them has several ranks: its sum then travels once instead of several
  /// times.
  [[nodiscard]] bool worth_while() const noexcept;

 private:
  std::vector<std::uint32_t> host_of_, place_of_;    // by rank
  std::vector<std::vector<std::uint32_t>> members_;  // by host
  std::uint32_t largest_ = 0;
};

/// Ranks are on one host if they can share memory, which equal tokens show (an empty token equals none), and have one
/// place in the topology. Both lists are by rank.
[[nodiscard]] HostMap find_hosts(std::span<const std::string> tokens, std::span<const std::string> places);
/// The map as text: `each 8` if every host has that many ranks in a row, `turns 4096` if the ranks go round that many
/// hosts, else `runs` with the hosts of neighbouring ranks and their numbers of ranks, `0x8 1x4`. So the text is short
/// if a rule placed the ranks.
[[nodiscard]] std::string encode(const HostMap& map);
/// Errc::corrupt if the text is no map of this many ranks.
[[nodiscard]] Result<HostMap> decode_hosts(const std::string& text, std::uint32_t ranks);
/// Checks another rank's map. Errc::corrupt if it is not by_rank() of any map of this many ranks.
[[nodiscard]] Result<HostMap> checked_hosts(std::vector<std::uint32_t> by_rank, std::uint32_t ranks);

}  // namespace tributary::client::hosts

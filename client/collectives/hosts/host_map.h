#pragma once
// Who is with whom: the ranks of a communicator by host. Rank 0 finds it out and tells all others, so all have the
// same.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::client::hosts {

class HostMap {
 public:
  /// By rank, the number of its host: hosts are numbered in the order of their first ranks, from 0.
  explicit HostMap(std::vector<std::uint32_t> host_of_rank);

  [[nodiscard]] std::uint32_t hosts() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(host_of_.size()); }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept { return host_of_[rank]; }
  /// Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t host) const noexcept { return members_[host]; }
  /// The rank that speaks for its host.
  [[nodiscard]] std::uint32_t leader(std::uint32_t host) const noexcept { return members_[host].front(); }
  [[nodiscard]] bool leads(std::uint32_t rank) const noexcept { return leader(host_of(rank)) == rank; }
  [[nodiscard]] bool alone(std::uint32_t rank) const noexcept { return members(host_of(rank)).size() == 1; }
  /// A rank's number among those of its host; the leader's is 0.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept { return place_of_[rank]; }
  [[nodiscard]] const std::vector<std::uint32_t>& by_rank() const noexcept { return host_of_; }

  /// Ranks of the largest host.
  [[nodiscard]] std::uint32_t largest() const noexcept { return largest_; }

  /// There are several hosts, and a host with several ranks: whose sum then travels once instead of several times.
  [[nodiscard]] bool worth_while() const noexcept;

 private:
  std::vector<std::uint32_t> host_of_, place_of_;    // by rank
  std::vector<std::vector<std::uint32_t>> members_;  // by host
  std::uint32_t largest_ = 0;
};

/// Ranks are of one host if they can share memory, which equal tokens tell (an empty one: with nobody), and have one
/// place in the topology. Both lists by rank.
[[nodiscard]] HostMap find_hosts(std::span<const std::string> tokens, std::span<const std::string> places);
/// The map as text: `each 8` where hosts have so many ranks in a row, `turns 4096` where ranks go round so many hosts,
/// else `runs` with the hosts of neighbouring ranks and how many they are, `0x8 1x4`. So it is short where ranks were
/// dealt out by a rule.
[[nodiscard]] std::string encode(const HostMap& map);
/// Errc::corrupt.
[[nodiscard]] Result<HostMap> decode_hosts(const std::string& text, std::uint32_t ranks);
/// Of what another rank says. Errc::corrupt if that is not by_rank() of any map of so many ranks.
[[nodiscard]] Result<HostMap> checked_hosts(std::vector<std::uint32_t> by_rank, std::uint32_t ranks);

}  // namespace tributary::client::hosts

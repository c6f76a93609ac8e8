#include "client/collectives/hosts/host_map.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tributary::client::hosts {

HostMap::HostMap(std::vector<std::uint32_t> host_of_rank) : host_of_(std::move(host_of_rank)) {
  for (std::uint32_t rank = 0; rank < host_of_.size(); ++rank) {
    if (host_of_[rank] == members_.size()) members_.emplace_back();
    auto& members = members_[host_of_[rank]];
    place_of_.push_back(static_cast<std::uint32_t>(members.size()));
    members.push_back(rank);
  }
}

bool HostMap::worth_while() const noexcept {
  return hosts() > 1 && hosts() < ranks();
}

HostMap find_hosts(std::span<const std::string> tokens, std::span<const std::string> places) {
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers;
  std::vector<std::uint32_t> by_rank;
  std::uint32_t hosts = 0;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    if (tokens[rank].empty()) {
      by_rank.push_back(hosts++);
      continue;
    }
    const auto [it, is_new] = numbers.try_emplace({tokens[rank], places[rank]}, hosts);
    hosts += is_new ? 1 : 0;
    by_rank.push_back(it->second);
  }
  return HostMap(std::move(by_rank));
}

Result<HostMap> checked_hosts(std::vector<std::uint32_t> by_rank, std::uint32_t ranks) {
  std::uint32_t hosts = 0;
  for (const std::uint32_t host : by_rank) {
    if (host > hosts) return fail(Errc::corrupt, "the hosts of the ranks are not numbered in their order");
    hosts += host == hosts ? 1 : 0;
  }
  if (by_rank.size() != ranks) return fail(Errc::corrupt, "the hosts of another number of ranks");
  return HostMap(std::move(by_rank));
}

}  // namespace tributary::client::hosts

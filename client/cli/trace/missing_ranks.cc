#include "client/cli/trace/missing_ranks.h"

#include <algorithm>
#include <map>
#include <set>

#include "client/cli/dump/verdict.h"

namespace tributary::cli {
namespace {

/// Returns a text such as "rank 2 on host node-2", or "ranks 2-3" if the manager does not know them by number.
std::string with_host(const Ranks& ranks, std::uint32_t all, const JobPlaces& places) {
  const auto known = std::ranges::find(places.hosts, all, [](const auto& hosts) { return hosts.size(); });
  if (known == places.hosts.end()) return ranks_text(ranks);
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first + 1;
    const std::string& host = (*known)[ranks[first]];
    while (last < ranks.size() && (*known)[ranks[last]] == host) ++last;
    const Ranks part(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                     ranks.begin() + static_cast<std::ptrdiff_t>(last));
    text += (first == 0 ? "" : ", ") + ranks_text(part) + " on host " + host;
    first = last;
  }
  return text;
}

/// Returns the hosts of the job on which no rank was traced.
std::string other_hosts(const std::vector<TracedRank>& traced, const JobPlaces& places) {
  std::set<std::string> hosts;
  for (const auto& group : places.hosts) hosts.insert(group.begin(), group.end());
  for (const TracedRank& rank : traced) hosts.erase(rank.host);
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? "" : ", ") + host;
  return text;
}

}  // namespace

std::vector<std::string> missing_ranks(const std::vector<TracedRank>& traced, const JobPlaces& places) {
  std::map<std::string, std::pair<std::uint32_t, std::set<std::uint32_t>>> groups;
  for (const TracedRank& rank : traced) {
    groups[rank.group].first = rank.ranks;
    groups[rank.group].second.insert(rank.rank);
  }
  std::vector<std::string> sentences;
  for (const auto& [group, found] : groups) {
    Ranks missing;
    for (std::uint32_t rank = 0; rank < found.first; ++rank) {
      if (!found.second.contains(rank)) missing.push_back(rank);
    }
    if (missing.empty()) continue;
    const std::string hosts = other_hosts(traced, places);
    const bool by_number = with_host(missing, found.first, places) != ranks_text(missing);
    sentences.push_back(with_host(missing, found.first, places) + " of group " + group +
                        (by_number || hosts.empty() ? "" : " (hosts of the job without a traced rank: " + hosts + ")") +
                        ": a status port is a socket of its own host; run the command there too");
  }
  return sentences;
}

}  // namespace tributary::cli

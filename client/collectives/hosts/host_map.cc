#include "client/collectives/hosts/host_map.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client::hosts {

HostMap::HostMap(std::vector<std::uint32_t> host_of_rank) : host_of_(std::move(host_of_rank)) {
  for (std::uint32_t rank = 0; rank < host_of_.size(); ++rank) {
    TRIBUTARY_ASSERT(host_of_[rank] <= members_.size(), "rank {} is on host {}, after {} hosts", rank, host_of_[rank],
                     members_.size());
    if (host_of_[rank] == members_.size()) members_.emplace_back();
    auto& members = members_[host_of_[rank]];
    place_of_.push_back(static_cast<std::uint32_t>(members.size()));
    members.push_back(rank);
    largest_ = std::max(largest_, static_cast<std::uint32_t>(members.size()));
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

namespace {

std::vector<std::uint32_t> by_rule(std::uint32_t ranks, auto&& rule) {
  std::vector<std::uint32_t> by_rank(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) by_rank[rank] = rule(rank);
  return by_rank;
}

/// Returns the whole number at the front of `text`, and removes it from `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<std::vector<std::uint32_t>> parse_runs(std::string_view text, std::uint32_t ranks) {
  std::vector<std::uint32_t> by_rank;
  while (take(text, " ")) {
    const auto host = take_number(text);
    if (!host || !take(text, "x")) return std::nullopt;
    const auto many = take_number(text);
    if (!many || *many > ranks - by_rank.size()) return std::nullopt;
    by_rank.insert(by_rank.end(), *many, *host);
  }
  if (!text.empty()) return std::nullopt;
  return by_rank;
}

}  // namespace

std::string encode(const HostMap& map) {
  const auto& by_rank = map.by_rank();
  const auto each = static_cast<std::uint32_t>(std::ranges::count(by_rank, 0U));
  if (each > 0 && by_rank == by_rule(map.ranks(), [each](std::uint32_t rank) { return rank / each; }))
    return "each " + std::to_string(each);
  const std::uint32_t hosts = map.hosts();
  if (hosts > 0 && by_rank == by_rule(map.ranks(), [hosts](std::uint32_t rank) { return rank % hosts; }))
    return "turns " + std::to_string(hosts);
  std::string text = "runs";
  for (std::size_t first = 0, next = 0; first < by_rank.size(); first = next) {
    while (next < by_rank.size() && by_rank[next] == by_rank[first]) ++next;
    text += " " + std::to_string(by_rank[first]) + "x" + std::to_string(next - first);
  }
  return text;
}

Result<HostMap> decode_hosts(const std::string& text, std::uint32_t ranks) {
  std::string_view rest(text);
  const bool each = take(rest, "each "), turns = !each && take(rest, "turns ");
  if (each || turns) {
    const auto number = take_number(rest);
    if (!number || *number == 0 || !rest.empty()) return fail(Errc::corrupt, "a malformed list of hosts");
    return checked_hosts(by_rule(ranks, [&](std::uint32_t r) { return each ? r / *number : r % *number; }), ranks);
  }
  auto runs = take(rest, "runs") ? parse_runs(rest, ranks) : std::nullopt;
  if (!runs) return fail(Errc::corrupt, "a malformed list of hosts");
  return checked_hosts(std::move(*runs), ranks);
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

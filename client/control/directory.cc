#include "client/control/directory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "client/control/json_number.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::client {

using nlohmann::json;

namespace {
constexpr std::uint32_t kFewRanks = 32;       // in groups of at most this size, rank 0 sends all addresses to each rank
constexpr std::uint32_t kExactQuestions = 4;  // this many questions ask only for the wanted ranks
constexpr std::uint32_t kPageMax = 256;       // the most ranks in one question
}  // namespace

const Member* Directory::find(std::uint32_t rank) const {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second;
}

void Directory::learn(std::uint32_t rank, Member member) {
  wanted_.erase(rank);
  asked_.erase(rank);
  members_.insert_or_assign(rank, std::move(member));
}

std::string Directory::on_host(std::uint32_t rank) const {
  const Member* const member = find(rank);
  return member == nullptr ? std::string() : " on host " + member->host_id;
}

std::string Directory::common_rail() const {
  if (members_.empty()) return {};
  const std::string& first = members_.begin()->second.rail;
  return std::ranges::all_of(members_, [&](const auto& it) { return it.second.rail == first; }) ? first : std::string();
}

std::uint64_t Directory::slowest_link() const {
  std::uint64_t slowest = 0;
  for (const auto& [rank, member] : members_) {
    if (member.link_rate != 0 && (slowest == 0 || member.link_rate < slowest)) slowest = member.link_rate;
  }
  return slowest;
}

std::vector<std::string> Directory::host_ids() const {
  std::vector<std::string> ids(nranks_);
  for (const auto& [rank, member] : members_) ids[rank] = member.host_id;
  return ids;
}

Witnesses Directory::witnesses() const {
  Witnesses witnesses;
  for (const auto& [rank, member] : members_) witnesses.learn(rank, member.process);
  return witnesses;
}

std::uint32_t Directory::ranks_of_fullest_address() const {
  std::map<std::string_view, std::uint32_t> by_address;
  std::uint32_t most = 0;
  for (const auto& [rank, member] : members_) most = std::max(most, ++by_address[member.at.host]);
  return most;
}

void Directory::want(std::uint32_t rank) {
  if (rank >= nranks_ || rank == rank_ || members_.contains(rank) || asked_.contains(rank)) return;
  const bool first = wanted_.empty();
  wanted_.insert(rank);
  if (first && on_wanted) on_wanted();
}

std::vector<std::uint32_t> Directory::take_wanted() {
  if (wanted_.empty()) return {};
  std::uint32_t page = 1;
  for (std::uint32_t q = kExactQuestions; q < questions_ && page < kPageMax; ++q) page *= 2;
  ++questions_;
  std::set<std::uint32_t> ranks;
  for (auto it = wanted_.begin(); it != wanted_.end() && ranks.size() < kMembersAskedMax; it = wanted_.erase(it)) {
    ranks.insert(*it);
    asked_.insert(*it);
  }
  for (const std::uint32_t rank : std::vector<std::uint32_t>(ranks.begin(), ranks.end())) {
    const std::uint32_t first = rank / page * page;
    for (std::uint32_t r = first; r < std::min(first + page, rank_) && ranks.size() < kMembersAskedMax; ++r) {
      if (members_.contains(r) || !asked_.insert(r).second) continue;
      wanted_.erase(r);
      ranks.insert(r);
    }
  }
  if (!wanted_.empty() && on_wanted) on_wanted();
  return {ranks.begin(), ranks.end()};
}

std::vector<std::uint32_t> usual_peers(std::uint32_t rank, std::uint32_t nranks) {
  std::set<std::uint32_t> peers;
  const auto add = [&](std::uint64_t peer) {
    if (peer < rank) peers.insert(static_cast<std::uint32_t>(peer));
  };
  if (nranks <= kFewRanks) {
    for (std::uint32_t peer = 0; peer < rank; ++peer) add(peer);
  }
  if (rank > 0) add(0);
  for (std::uint64_t bit = 1; bit < nranks; bit *= 2) {
    add(rank ^ bit);
    add((rank + bit) % nranks);
    add((rank + nranks - bit) % nranks);
  }
  return {peers.begin(), peers.end()};
}

json members_to_json(const Directory& directory, const std::vector<std::uint32_t>& ranks) {
  json members = json::array();
  for (const std::uint32_t rank : ranks) {
    if (const Member* const m = directory.find(rank))
      members.push_back({rank, m->at.host, m->at.port, m->host_id, m->second_port});
  }
  return members;
}

std::vector<std::uint32_t> learn_members(Directory& directory, const json& members) {
  std::vector<std::uint32_t> ranks;
  if (!members.is_array()) throw std::invalid_argument("members");
  for (const json& member : members) {
    const auto rank = json_number<std::uint32_t>(member.at(0));
    if (rank >= directory.nranks()) throw std::invalid_argument("a member with a rank that does not exist");
    directory.learn(rank, {.at = {member.at(1).get<std::string>(), json_number<std::uint16_t>(member.at(2))},
                           .second_port = json_number<std::uint16_t>(member.at(4)),
                           .host_id = member.at(3).get<std::string>()});
    ranks.push_back(rank);
  }
  return ranks;
}

Result<std::vector<std::uint32_t>> decode_ranks(const std::string& body, std::uint32_t nranks) {
  const json array = json_or_discarded(body);
  const auto malformed = [] { return fail(Errc::corrupt, "a malformed question for members"); };
  if (!array.is_array() || array.size() > kMembersAskedMax) return malformed();
  std::vector<std::uint32_t> ranks;
  for (const json& rank : array) {
    if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= nranks) return malformed();
    ranks.push_back(rank.get<std::uint32_t>());
  }
  return ranks;
}

}  // namespace tributary::client

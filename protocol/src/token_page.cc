#include "tributary/protocol/token_page.h"

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "protocol/src/json_members.h"

namespace tributary {
namespace {

using nlohmann::json;

/// The leaves of one lane, each of them once. number() returns a leaf's index.
class LeafTable {
 public:
  std::size_t number(const LaneEntry& entry) {
    const Key key{entry.aggregator_name, entry.aggregator.host, entry.aggregator.port};
    const auto [at, fresh] = numbers_.emplace(key, numbers_.size());
    if (fresh) {
      json tokens = json::array();
      for (std::size_t i = 1; i < entry.tokens.size(); ++i) tokens.push_back(to_base64(entry.tokens[i]));
      leaves_.push_back({{"host", entry.aggregator.host},
                         {"port", entry.aggregator.port},
                         {"aggregator", entry.aggregator_name},
                         {"tokens", std::move(tokens)}});
    }
    return at->second;
  }
  [[nodiscard]] json& leaves() { return leaves_; }

 private:
  using Key = std::tuple<std::string, std::string, std::uint16_t>;
  std::map<Key, std::size_t> numbers_;
  json leaves_ = json::array();
};

Result<LaneEntry> leaf_from_json(const json& object, const std::string& where) {
  JsonMembers members("token page", object, where);
  LaneEntry leaf;
  leaf.aggregator.host = members.text("host", 255);
  leaf.aggregator.port = members.number<std::uint16_t>("port", 1, 65535);
  leaf.aggregator_name = members.text("aggregator", kNameBytesMax);
  leaf.tokens.emplace_back();  // the place of each rank's own token
  for (const json& token : members.array("tokens", kTreeLevelsMax - 1)) {
    if (!members.token(token, leaf.tokens.emplace_back())) break;
  }
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  return leaf;
}

Result<std::vector<LaneEntry>> entries_from_json(const json& object, const std::string& where) {
  JsonMembers members("token page", object, where);
  const json& leaf_list = members.array("leaves", kTokenPageRanksMax);
  const json& rank_list = members.array("ranks", kTokenPageRanksMax);
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  std::vector<LaneEntry> leaves;
  for (std::size_t i = 0; i < leaf_list.size(); ++i) {
    auto leaf = leaf_from_json(leaf_list[i], where + "leaves[" + std::to_string(i) + "].");
    if (!leaf) return std::unexpected(leaf.error());
    leaves.push_back(std::move(*leaf));
  }
  std::vector<LaneEntry> entries;
  entries.reserve(rank_list.size());
  for (std::size_t i = 0; i < rank_list.size(); ++i) {
    JsonMembers rank("token page", rank_list[i], where + "ranks[" + std::to_string(i) + "].");
    const auto leaf = rank.number<std::uint32_t>("leaf", 0, kTokenPageRanksMax);
    if (rank.error().empty() && leaf >= leaves.size()) rank.complain("leaf is not one of the leaves");
    if (!rank.error().empty()) return fail(Errc::corrupt, rank.error());
    entries.push_back(leaves[leaf]);
    const auto token = rank_list[i].find("token");
    if (!rank.token(token == rank_list[i].end() ? json() : *token, entries.back().tokens.front())) {
      return fail(Errc::corrupt, rank.error());
    }
  }
  return entries;
}

}  // namespace

GroupDescriptor TokenPage::for_rank(const GroupDescriptor& descriptor, std::uint32_t rank) const {
  GroupDescriptor part = descriptor;
  part.expires_at = expires_at;
  for (std::size_t i = 0; i < part.lanes.size(); ++i) part.lanes[i].entries = {lanes.at(i).at(rank - first_rank)};
  return part;
}

nlohmann::json to_json(const TokenPage& page) {
  json lanes = json::array();
  for (const auto& entries : page.lanes) {
    LeafTable table;
    json ranks = json::array();
    for (const LaneEntry& entry : entries) {
      ranks.push_back({{"leaf", table.number(entry)}, {"token", to_base64(entry.tokens.front())}});
    }
    lanes.push_back({{"leaves", std::move(table.leaves())}, {"ranks", std::move(ranks)}});
  }
  return {{"group", page.group},
          {"epoch", page.epoch},
          {"from", page.first_rank},
          {"expires_at", page.expires_at},
          {"lanes", std::move(lanes)}};
}

Result<TokenPage> token_page_from_json(const nlohmann::json& json) {
  JsonMembers members("token page", json, "");
  TokenPage page;
  page.group = members.number<std::uint64_t>("group", 0, UINT64_MAX);
  page.epoch = members.number<std::uint32_t>("epoch", 0, UINT32_MAX);
  page.first_rank = members.number<std::uint32_t>("from", 0, kRanksMax);
  page.expires_at = members.number<std::int64_t>("expires_at", 0, INT64_MAX);
  const nlohmann::json& lanes = members.array("lanes", kLanesMax);
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    auto lane = entries_from_json(lanes[i], "lanes[" + std::to_string(i) + "].");
    if (!lane) return std::unexpected(lane.error());
    if (i > 0 && lane->size() != page.lanes[0].size()) {
      return fail(Errc::corrupt, "token page: the lanes have different numbers of ranks");
    }
    page.lanes.push_back(std::move(*lane));
  }
  return page;
}

}  // namespace tributary

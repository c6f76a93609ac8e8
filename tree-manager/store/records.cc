#include "tree-manager/store/records.h"

#include <nlohmann/json.hpp>

namespace tributary::manager {
namespace {

using nlohmann::json;

json to_json(const LaneTree& lane) {
  json nodes = json::array();
  for (const TreeNode& node : lane.nodes) {
    nodes.push_back({{"aggregator", node.aggregator},
                     {"incarnation", node.incarnation},
                     {"host", node.host},
                     {"data_host", node.data.host},
                     {"data_port", node.data.port},
                     {"parent", node.parent},
                     {"up_host", node.up.host},
                     {"up_port", node.up.port},
                     {"data_changes", node.data_changes}});
  }
  return {{"nodes", std::move(nodes)}, {"leaf_of_rank", lane.leaf_of_rank},
          {"route", lane.route},       {"rail", lane.rail},
          {"weight", lane.weight},     {"window", lane.window}};
}

/// Lanes of older records use their own numbers as routes, and have equal weights.
Result<LaneTree> lane_from_json(const json& from, std::uint32_t number) {
  LaneTree lane{.rail = from.value("rail", ""),
                .route = from.value("route", number),
                .weight = from.value("weight", 1U),
                .window = from.value("window", 0U)};
  for (const json& node : from.at("nodes")) {
    lane.nodes.push_back({.aggregator = node.at("aggregator"),
                          .incarnation = node.at("incarnation"),
                          .host = node.at("host"),
                          .data = {node.at("data_host"), node.at("data_port")},
                          .parent = node.at("parent"),
                          .up = {node.value("up_host", ""), node.value<std::uint16_t>("up_port", 0)},
                          .data_changes = node.value("data_changes", 0U)});
  }
  from.at("leaf_of_rank").get_to(lane.leaf_of_rank);
  if (auto ok = lane.finish(); !ok) return std::unexpected(ok.error());
  return lane;
}

/// Returns all addresses except the first, which has the same place in the records of every version.
json more_of(const DataAddresses& addresses) {
  json more = json::array();
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    more.push_back({{"host", addresses[i].at.host}, {"port", addresses[i].at.port}, {"live", addresses[i].live}});
  }
  return more;
}

Result<DataAddresses> addresses_from_json(const json& from) {
  DataAddresses addresses{{.at = {from.at("data_host"), from.at("data_port")}, .live = from.value("data_live", true)}};
  for (const json& it : from.value("data_more", json::array())) {
    addresses.push_back({.at = {it.at("host"), it.at("port")}, .live = it.at("live")});
  }
  if (addresses.size() <= kDataAddressesMax) return addresses;
  return fail(Errc::corrupt, "the manager's database holds an aggregator with too many addresses");
}

/// Reads a text with `read`. An exception of `read` means that the manager did not write the text.
template <class Record, class Read>
Result<Record> parse(const std::string& text, std::string_view what, const Read& read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    return fail(Errc::corrupt,
                "the manager's database holds " + std::string(what) + " that cannot be read: " + error.what());
  }
}

}  // namespace

PathRates rates_from(const json& group) {
  const auto rates = group.find("rates");
  if (rates == group.end() || !rates->is_array() || rates->size() < 3) return {};
  const auto rate = [&](std::size_t i) -> std::uint64_t {
    if (i >= rates->size()) return 0;  // a record of an older manager has only the first rates
    const json& it = (*rates)[i];
    return it.is_number_unsigned() && it.get<std::uint64_t>() <= kPathRateMax ? it.get<std::uint64_t>() : 0;
  };
  return {
      .links = rate(0), .trees = rate(1), .ranks = rate(2), .doubling = rate(3), .halving = rate(4), .spread = rate(5)};
}

json rates_to_json(const PathRates& rates) {
  return {rates.links, rates.trees, rates.ranks, rates.doubling, rates.halving, rates.spread};
}

std::string to_text(const AggregatorRecord& r) {
  return json{{"name", r.name},
              {"incarnation", r.incarnation},
              {"host", r.host},
              {"data_host", r.data.front().at.host},
              {"data_port", r.data.front().at.port},
              {"data_live", r.data.front().live},
              {"data_more", more_of(r.data)},
              {"data_changes", r.data_changes},
              {"http_host", r.http.host},
              {"http_port", r.http.port},
              {"memory_bytes", r.memory_bytes},
              {"children_max", r.children_max},
              {"line_rate_bits_per_second", r.line_rate_bits_per_second},
              {"version", r.version},
              {"draining", r.draining},
              {"resuming", r.resuming},
              {"expired", r.expired},
              {"registered_at", r.registered_at},
              {"exchange_key", r.exchange_key},
              {"owner", r.owner},
              {"security", static_cast<unsigned>(r.security)}}
      .dump();
}

Result<AggregatorRecord> aggregator_from_text(const std::string& text) {
  return parse<AggregatorRecord>(text, "an aggregator", [](const json& from) -> Result<AggregatorRecord> {
    auto addresses = addresses_from_json(from);
    if (!addresses) return std::unexpected(addresses.error());
    return AggregatorRecord{.name = from.at("name"),
                            .incarnation = from.at("incarnation"),
                            .host = from.at("host"),
                            .data = std::move(*addresses),
                            .http = {from.at("http_host"), from.at("http_port")},
                            .memory_bytes = from.at("memory_bytes"),
                            .children_max = from.at("children_max"),
                            .line_rate_bits_per_second = from.at("line_rate_bits_per_second"),
                            .version = from.at("version"),
                            .draining = from.at("draining"),
                            .resuming = from.value("resuming", false),
                            .expired = from.at("expired"),
                            .registered_at = from.at("registered_at"),
                            .exchange_key = from.value("exchange_key", ""),
                            .data_changes = from.value("data_changes", 0U),
                            .owner = from.value("owner", ""),
                            .security = static_cast<PacketSecurity>(from.value("security", 0U))};
  });
}

std::string to_text(const GroupRecord& r) {
  json lanes = json::array();
  for (const LaneTree& lane : r.lanes) lanes.push_back(to_json(lane));
  json failed = json::array();
  for (const FailedAggregator& it : r.failed) {
    failed.push_back(
        {{"name", it.name}, {"incarnation", it.incarnation}, {"since", it.since}, {"data_changes", it.data_changes}});
  }
  json before = json::array();
  for (const UsedAggregator& it : r.before) before.push_back({it.name, it.incarnation, it.data_changes});
  return json{{"id", r.id},
              {"job", r.job},
              {"hosts", r.hosts},
              {"lanes_wanted", r.lanes_wanted},
              {"window_wanted", r.window_wanted},
              {"window", r.window},
              {"segment_bytes", r.segment_bytes},
              {"levels_wanted", r.levels_wanted},
              {"epoch", r.epoch},
              {"lanes", std::move(lanes)},
              {"reason", r.reason},
              {"failed", std::move(failed)},
              {"created_at", r.created_at},
              {"packet_security", static_cast<unsigned>(r.packet_security)},
              {"exchange_key", r.exchange_key},
              {"request_id", r.request_id},
              {"user", r.user},
              {"processes", r.processes},
              {"adopted_at", r.adopted_at},
              {"before", std::move(before)},
              {"rates", rates_to_json(r.rates)},
              {"link_rate", r.link_rate},
              {"lane_weights", r.lane_weights},
              {"form_senders", std::string(to_string(r.form_senders))},
              {"rail", r.rail},
              {"owner", r.owner},
              {"priority", std::string(to_string(r.priority))},
              {"code", r.code}}
      .dump();
}

Result<GroupRecord> group_from_text(const std::string& text) {
  return parse<GroupRecord>(text, "a group", [](const json& from) -> Result<GroupRecord> {
    GroupRecord r{
        .id = from.at("id"),
        .job = from.at("job"),
        .hosts = from.at("hosts"),
        .lanes_wanted = from.at("lanes_wanted"),
        .window_wanted = from.value("window_wanted", 0U),
        .window = from.at("window"),
        .segment_bytes = from.at("segment_bytes"),
        .levels_wanted = from.at("levels_wanted"),
        .epoch = from.at("epoch"),
        .lanes = {},
        .reason = from.at("reason"),
        .failed = {},
        .created_at = from.at("created_at"),
        .packet_security = static_cast<PacketSecurity>(from.value("packet_security", 0U)),
        .exchange_key = from.value("exchange_key", ""),
        .request_id = from.value("request_id", ""),
        .user = from.value("user", ""),
        .processes = from.value("processes", 0U),
        .adopted_at = from.value("adopted_at", std::int64_t{0}),
        .before = {},
        .rates = rates_from(from),
        .link_rate = from.value("link_rate", std::uint64_t{0}),
        .lane_weights = from.value("lane_weights", false),
        .form_senders = form_senders_from_string(from.value("form_senders", "")).value_or(FormSenders::nobody),
        .rail = from.value("rail", ""),
        .owner = from.value("owner", ""),
        .priority = priority_from_string(from.value("priority", "")).value_or(Priority::normal),
        .code = from.value("code", "")};
    for (const json& it : from.at("failed")) {
      r.failed.push_back({it.at("name"), it.at("incarnation"), it.at("since"), it.value("data_changes", 0U)});
    }
    for (const json& it : from.value("before", json::array())) r.before.push_back({it.at(0), it.at(1), it.at(2)});
    for (const json& it : from.at("lanes")) {
      auto lane = lane_from_json(it, static_cast<std::uint32_t>(r.lanes.size()));
      if (!lane) return std::unexpected(lane.error());
      r.lanes.push_back(std::move(*lane));
    }
    return r;
  });
}

}  // namespace tributary::manager

#include "tributary/protocol/descriptor.h"

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "protocol/src/json_members.h"

namespace tributary {
namespace {

using nlohmann::json;

Result<LaneEntry> entry_from_json(const json& object, const std::string& where) {
  JsonMembers members("group descriptor", object, where);
  LaneEntry entry;
  entry.aggregator.host = members.text("host", 255);
  entry.aggregator.port = members.number<std::uint16_t>("port", 1, 65535);
  entry.aggregator_name = members.text("aggregator", kNameBytesMax);
  for (const json& token : members.array("tokens", kTreeLevelsMax)) {
    if (!members.token(token, entry.tokens.emplace_back())) break;
  }
  if (members.error().empty() && entry.tokens.empty()) members.complain("tokens is empty");
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  return entry;
}

Result<LaneDescriptor> lane_from_json(const json& object, const std::string& where) {
  JsonMembers members("group descriptor", object, where);
  LaneDescriptor lane;
  lane.window = members.number<std::uint32_t>("window", 1, kWindowMax);
  lane.segment_bytes = members.number<std::uint32_t>("segment_bytes", kSegmentBytesMin, kSegmentBytesMax);
  lane.levels = members.number<std::uint32_t>("levels", 1, kTreeLevelsMax);
  if (object.is_object() && object.contains("weight"))
    lane.weight = members.number<std::uint32_t>("weight", 1, kLaneWeightMax);
  if (lane.segment_bytes % 64 != 0) members.complain("segment_bytes is no multiple of 64");
  const json& entries = members.array("ranks", kRanksMax);
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  lane.entries.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto entry = entry_from_json(entries[i], where + "ranks[" + std::to_string(i) + "].");
    if (!entry) return std::unexpected(entry.error());
    lane.entries.push_back(std::move(*entry));
  }
  return lane;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.contains(':');
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(Errc::bad_argument,
                "'" + std::string(text) + "' is no address: " + std::string(why) + "; write host:port, or [IPv6]:port");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.contains(':')) {
    return bad("an IPv6 address needs brackets");
  }
  if (host.empty()) return bad("the host is missing");
  Endpoint endpoint{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc{} || end != port.data() + port.size()) return bad("the port is not a number from 0 to 65535");
  return endpoint;
}

GroupDescriptor GroupDescriptor::for_rank(std::uint32_t rank) const {
  // Copy only this rank's part: rank 0 does this for each rank, and copies of all entries would take too much time.
  GroupDescriptor part{.group = group,
                       .epoch = epoch,
                       .job = job,
                       .expires_at = expires_at,
                       .lease_seconds = lease_seconds,
                       .reason = reason,
                       .lanes = {},
                       .security = security,
                       .exchange_key = exchange_key,
                       .rates = rates,
                       .fence = fence};
  for (const LaneDescriptor& lane : lanes) {
    part.lanes.push_back({.window = lane.window,
                          .segment_bytes = lane.segment_bytes,
                          .levels = lane.levels,
                          .weight = lane.weight,
                          .entries = {lane.entries.at(rank)}});
  }
  return part;
}

nlohmann::json to_json(const PathRates& rates) {
  return {{"links", rates.links},       {"trees", rates.trees},     {"ranks", rates.ranks},
          {"doubling", rates.doubling}, {"halving", rates.halving}, {"spread", rates.spread}};
}

Result<PathRates> path_rates_from_json(const nlohmann::json& json) {
  JsonMembers members("group descriptor", json, "rates.");
  const auto rate = [&](const char* name) { return members.number<std::uint64_t>(name, 0, kPathRateMax); };
  const auto rate_or_zero = [&](const char* name) { return json.is_object() && json.contains(name) ? rate(name) : 0; };
  const PathRates rates{.links = rate("links"),
                        .trees = rate("trees"),
                        .ranks = rate("ranks"),
                        .doubling = rate_or_zero("doubling"),
                        .halving = rate_or_zero("halving"),
                        .spread = rate_or_zero("spread")};
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  return rates;
}

nlohmann::json to_json(const GroupDescriptor& d) {
  json lanes = json::array();
  for (const LaneDescriptor& lane : d.lanes) {
    json ranks = json::array();
    for (const LaneEntry& entry : lane.entries) {
      json tokens = json::array();
      for (const Token& token : entry.tokens) tokens.push_back(to_base64(token));
      ranks.push_back({{"host", entry.aggregator.host},
                       {"port", entry.aggregator.port},
                       {"aggregator", entry.aggregator_name},
                       {"tokens", std::move(tokens)}});
    }
    lanes.push_back({{"window", lane.window},
                     {"segment_bytes", lane.segment_bytes},
                     {"levels", lane.levels},
                     {"ranks", std::move(ranks)}});
    if (lane.weight != 1) lanes.back()["weight"] = lane.weight;
  }
  json object = {{"group", d.group},
                 {"epoch", d.epoch},
                 {"job", d.job},
                 {"expires_at", d.expires_at},
                 {"lease_seconds", d.lease_seconds},
                 {"reason", d.reason},
                 {"lanes", std::move(lanes)}};
  if (d.security != PacketSecurity::off) object["packet_security"] = std::string(to_string(d.security));
  if (d.security != PacketSecurity::off || d.exchange_key != ExchangePublicKey{})
    object["exchange_key"] = to_base64(d.exchange_key);
  if (d.rates != PathRates{}) object["rates"] = to_json(d.rates);
  if (d.fence != 0) object["fence"] = d.fence;
  return object;
}

Result<GroupDescriptor> group_descriptor_from_json(const nlohmann::json& json) {
  JsonMembers members("group descriptor", json, "");
  GroupDescriptor d;
  d.group = members.number<std::uint64_t>("group", 0, UINT64_MAX);
  d.epoch = members.number<std::uint32_t>("epoch", 0, UINT32_MAX);
  d.job = members.text("job", kNameBytesMax);
  d.expires_at = members.number<std::int64_t>("expires_at", 0, INT64_MAX);
  d.lease_seconds = members.number<std::uint32_t>("lease_seconds", 0, 1U << 30);
  d.reason = members.text("reason", 4096);
  if (json.is_object() && json.contains("packet_security")) {
    const auto security = parse_packet_security(members.text("packet_security", 16));
    if (!security) members.complain("packet_security: " + security.error().message);
    d.security = security.value_or(PacketSecurity::encrypt);
  }
  if (json.is_object() && (json.contains("packet_security") || json.contains("exchange_key"))) {
    const auto key = from_base64(members.text("exchange_key", 64));
    if (!key || key->size() != kExchangeKeyBytes) {
      members.complain("exchange_key is not base64 of 32 bytes");
    } else {
      std::memcpy(d.exchange_key.data(), key->data(), kExchangeKeyBytes);
    }
  }
  if (json.is_object() && json.contains("rates")) {
    const auto rates = path_rates_from_json(json.at("rates"));
    if (!rates) return std::unexpected(rates.error());
    d.rates = *rates;
  }
  if (json.is_object() && json.contains("fence")) d.fence = members.number<std::uint64_t>("fence", 0, kFenceMax);
  const nlohmann::json& lanes = members.array("lanes", kLanesMax);
  if (!members.error().empty()) return fail(Errc::corrupt, members.error());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    auto lane = lane_from_json(lanes[i], "lanes[" + std::to_string(i) + "].");
    if (!lane) return std::unexpected(lane.error());
    if (lane->entries.size() != (i == 0 ? lane->entries.size() : d.lanes[0].entries.size())) {
      return fail(Errc::corrupt, "group descriptor: the lanes have different numbers of ranks");
    }
    d.lanes.push_back(std::move(*lane));
  }
  return d;
}

}  // namespace tributary

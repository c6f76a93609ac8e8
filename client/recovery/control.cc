#include "client/recovery/control.h"

#include <nlohmann/json.hpp>

#include "client/bootstrap/json_number.h"

namespace tributary::client {

using nlohmann::json;

namespace {
/// Control messages come from ranks that proved the secret; a body that does not parse is a broken peer, and an error
/// rather than a crash.
json parse(const std::string& body) {
  return json::parse(body, nullptr, false);
}
}  // namespace

std::string encode(const LaneFailure& failure) {
  return json{{"aggregator", failure.aggregator}, {"reason", failure.reason}}.dump(-1, ' ', false,
                                                                                   json::error_handler_t::replace);
}

LaneFailure decode_lane_failure(const std::string& body) {
  const json object = parse(body);
  if (!object.is_object()) return {"", body};
  const auto text = [&object](const char* member) {
    const auto found = object.find(member);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return {text("aggregator"), text("reason")};
}

std::string encode(const Holdings& holdings) {
  return json(holdings).dump();
}

Result<Holdings> decode_holdings(const std::string& body) {
  const json array = parse(body);
  if (!array.is_array() || array.size() > kLanesMax) return fail(Errc::corrupt, "a malformed holdings report");
  Holdings holdings;
  for (const json& prefix : array) {
    if (!prefix.is_number_unsigned()) return fail(Errc::corrupt, "a malformed holdings report");
    holdings.push_back(prefix.get<std::uint64_t>());
  }
  return holdings;
}

std::string encode(const std::vector<Holdings>& by_rank) {
  return json(by_rank).dump();
}

Result<std::vector<Holdings>> decode_all_holdings(const std::string& body) {
  const json array = parse(body);
  if (!array.is_array()) return fail(Errc::corrupt, "a malformed recover message");
  std::vector<Holdings> all;
  for (const json& one : array) {
    auto holdings = decode_holdings(one.dump());
    if (!holdings) return std::unexpected(holdings.error());
    all.push_back(std::move(*holdings));
  }
  return all;
}

std::string encode(const Progress& p) {
  json object{{"called", p.called}, {"ended", p.ended}, {"waits_for_tree", p.waits_for_tree},
              {"oldest", p.oldest}, {"steps", p.steps}, {"waits_for", p.waits_for}};
  if (p.signature_known) {
    object["signature"] = {static_cast<int>(p.signature.collective), static_cast<int>(p.signature.dtype),
                           static_cast<int>(p.signature.op), p.signature.root, p.signature.count};
  }
  return object.dump();
}

Result<Progress> decode_progress(const std::string& body) {
  const json object = parse(body);
  if (!object.is_object()) return fail(Errc::corrupt, "a malformed progress report");
  try {
    Progress p;
    p.called = object.at("called").get<bool>();
    p.ended = object.at("ended").get<bool>();
    p.waits_for_tree = object.at("waits_for_tree").get<bool>();
    p.oldest = json_number<std::uint64_t>(object.at("oldest"));
    p.steps = json_number<std::uint64_t>(object.at("steps"));
    p.waits_for = object.at("waits_for").get<std::string>();
    if (const auto it = object.find("signature"); it != object.end() && it->size() == 5) {
      const auto collective = json_number<std::uint8_t>(it->at(0)), dtype = json_number<std::uint8_t>(it->at(1)),
                 op = json_number<std::uint8_t>(it->at(2));
      if (collective >= kCollectiveCount || dtype >= kDTypeCount || op >= kReduceOpCount)
        return fail(Errc::corrupt, "a malformed progress report");
      p.signature_known = true;
      p.signature = {static_cast<Collective>(collective), static_cast<DType>(dtype), static_cast<ReduceOp>(op),
                     json_number<std::uint32_t>(it->at(3)), json_number<std::uint64_t>(it->at(4))};
    }
    return p;
  } catch (const json::exception&) {
    return fail(Errc::corrupt, "a malformed progress report");
  }
}

}  // namespace tributary::client

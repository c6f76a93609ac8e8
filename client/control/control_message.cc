#include "client/control/control_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "client/control/json_number.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/scaled_sum.h"

namespace tributary::client {

using nlohmann::json;

namespace {
/// Parses the body of a control message. Only ranks that have proved the secret send such messages. If a body does not
/// parse, the peer is broken: the caller returns an error.
json parse(const std::string& body) {
  return json_or_discarded(body);
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
  json lanes = json::array();
  for (const LaneHolding& lane : holdings) {
    json& numbers = lanes.emplace_back(json::array({lane.prefix}));
    for (const std::uint64_t sequence : lane.wanted) numbers.push_back(sequence);
  }
  return lanes.dump();
}

namespace {

/// Reads sequences of one window, in ascending order. Throws std::invalid_argument, and the exceptions of
/// json_number().
std::vector<std::uint64_t> sequences(const json& array, std::size_t first) {
  if (!array.is_array() || array.size() > first + kWindowMax) throw std::invalid_argument("sequences");
  std::vector<std::uint64_t> sequences;
  for (std::size_t i = first; i < array.size(); ++i) {
    sequences.push_back(json_number<std::uint64_t>(array[i]));
    if (sequences.size() > 1 && sequences.back() <= sequences[sequences.size() - 2])
      throw std::invalid_argument("sequences that do not ascend");
  }
  return sequences;
}

}  // namespace

Result<Holdings> decode_holdings(const std::string& body) {
  const json lanes = parse(body);
  if (!lanes.is_array() || lanes.size() > kLanesMax) return fail(Errc::corrupt, "a malformed holdings report");
  try {
    Holdings holdings;
    for (const json& lane : lanes) {
      if (!lane.is_array() || lane.empty()) throw std::invalid_argument("lane");
      const auto prefix = json_number<std::uint64_t>(lane[0]);
      holdings.emplace_back(prefix, sequences(lane, 1));
      if (!holdings.back().wanted.empty() && holdings.back().wanted.front() < prefix)
        throw std::invalid_argument("wants what it has");
    }
    return holdings;
  } catch (const std::exception&) {
    return fail(Errc::corrupt, "a malformed holdings report");
  }
}

std::string encode(const Moves& moves) {
  json lanes = json::array();
  for (const LaneMoves& lane : moves) {
    json object{{"own", lane.own}, {"lo", lane.lo}, {"hi", lane.hi}};
    if (lane.from) object["from"] = *lane.from;
    for (const LaneMoves::To& to : lane.to) object["to"].push_back({to.rank, to.prefix});
    if (!lane.wanted.empty()) object["wanted"] = lane.wanted;
    lanes.push_back(std::move(object));
  }
  return lanes.dump();
}

Result<Moves> decode_moves(const std::string& body) {
  const json lanes = parse(body);
  if (!lanes.is_array() || lanes.size() > kLanesMax) return fail(Errc::corrupt, "a malformed recover message");
  try {
    Moves moves;
    for (const json& object : lanes) {
      LaneMoves& lane = moves.emplace_back();
      lane.own = json_number<std::uint64_t>(object.at("own"));
      lane.lo = json_number<std::uint64_t>(object.at("lo"));
      lane.hi = json_number<std::uint64_t>(object.at("hi"));
      if (const auto it = object.find("from"); it != object.end()) lane.from = json_number<std::uint32_t>(*it);
      if (const auto it = object.find("to"); it != object.end()) {
        for (const json& to : *it)
          lane.to.push_back({json_number<std::uint32_t>(to.at(0)), json_number<std::uint64_t>(to.at(1))});
      }
      if (const auto it = object.find("wanted"); it != object.end()) lane.wanted = sequences(*it, 0);
    }
    return moves;
  } catch (const std::exception&) {
    return fail(Errc::corrupt, "a malformed recover message");
  }
}

std::string encode(const Progress& p) {
  json object{{"called", p.called}, {"ended", p.ended}, {"waits_for_tree", p.waits_for_tree},
              {"oldest", p.oldest}, {"steps", p.steps}, {"waits_for", p.waits_for}};
  if (p.signature_known) {
    object["signature"] = {static_cast<int>(p.signature.collective), static_cast<int>(p.signature.dtype),
                           static_cast<int>(p.signature.op), p.signature.root, p.signature.count};
  }
  if (p.unasked) object["unasked"] = true;
  if (p.stood_still_ms > 0) object["stood_still_ms"] = p.stood_still_ms;
  if (p.troubles.processor_wait > 0) object["processor_wait"] = p.troubles.processor_wait;
  if (p.troubles.sent_again > 0) object["sent_again"] = p.troubles.sent_again;
  if (p.troubles.device_errors > 0) object["device_errors"] = p.troubles.device_errors;
  if (p.sighting) {
    object["sighting"] = {
        {"rank", p.sighting->rank}, {"stopped", p.sighting->stopped}, {"processor_wait", p.sighting->processor_wait}};
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
    p.unasked = object.value("unasked", false);
    p.oldest = json_number<std::uint64_t>(object.at("oldest"));
    p.steps = json_number<std::uint64_t>(object.at("steps"));
    p.waits_for = object.at("waits_for").get<std::string>();
    if (const auto it = object.find("stood_still_ms"); it != object.end())
      p.stood_still_ms = json_number<std::uint32_t>(*it);
    const auto at_most_100 = [&object](const char* name, std::uint8_t& into) {
      if (const auto it = object.find(name); it != object.end())
        into = std::min<std::uint8_t>(json_number<std::uint8_t>(*it), 100);
    };
    at_most_100("processor_wait", p.troubles.processor_wait);
    at_most_100("sent_again", p.troubles.sent_again);
    at_most_100("device_errors", p.troubles.device_errors);
    if (const auto it = object.find("sighting"); it != object.end()) {
      p.sighting = {.rank = json_number<std::uint32_t>(it->at("rank")),
                    .stopped = it->at("stopped").get<bool>(),
                    .processor_wait = std::min<std::uint8_t>(json_number<std::uint8_t>(it->at("processor_wait")), 100)};
    }
    if (const auto it = object.find("signature"); it != object.end() && it->size() == 5) {
      const auto collective = json_number<std::uint8_t>(it->at(0)), dtype = json_number<std::uint8_t>(it->at(1)),
                 op = json_number<std::uint8_t>(it->at(2));
      if (collective >= kCollectiveCount || dtype >= kDTypeCount || !is_wire_op(ReduceOp{op}, DType{dtype}))
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

#include "tree-manager/service/sealed_record.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tree-manager/store/records.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::string_view kPurpose = "tributary group record 1";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Gives each value a number, and lists the values in the order of the numbers.
template <class Value>
class Table {
 public:
  std::size_t number(const Value& value) {
    const auto [at, fresh] = numbers_.emplace(value, numbers_.size());
    if (fresh) list_.push_back(json(value));
    return at->second;
  }
  [[nodiscard]] const json& list() const { return list_; }

 private:
  std::map<Value, std::size_t> numbers_;
  json list_ = json::array();
};

/// Lists each number, followed by the number of times that it comes in a row.
json runs_of(const std::vector<std::uint32_t>& numbers) {
  json runs = json::array();
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    runs.push_back(numbers[i]);
    runs.push_back(end - i);
    i = end;
  }
  return runs;
}

Result<std::vector<std::uint32_t>> from_runs(const json& runs, std::size_t count) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
    const auto times = runs[i + 1].get<std::size_t>();
    if (times > count - numbers.size()) return fail(Errc::bad_argument, "the record has more ranks than the group");
    numbers.insert(numbers.end(), times, runs[i].get<std::uint32_t>());
  }
  if (numbers.size() != count) return fail(Errc::bad_argument, "the record has fewer ranks than the group");
  return numbers;
}

using NamedAggregator = std::tuple<std::string, std::uint64_t, std::string, std::uint32_t>;
using Address = std::pair<std::string, std::uint16_t>;

Address address_of(const Endpoint& endpoint) {
  return {endpoint.host, endpoint.port};
}

json trees_of(const std::vector<LaneTree>& lanes) {
  Table<NamedAggregator> aggregators;
  Table<Address> addresses;
  json trees = json::array();
  for (const LaneTree& lane : lanes) {
    json nodes = json::array();
    for (const TreeNode& node : lane.nodes) {
      nodes.push_back({aggregators.number({node.aggregator, node.incarnation, node.host, node.data_changes}),
                       addresses.number(address_of(node.data)), node.parent, addresses.number(address_of(node.up))});
    }
    trees.push_back({{"nodes", std::move(nodes)},
                     {"leaves", runs_of(lane.leaf_of_rank)},
                     {"route", lane.route},
                     {"weight", lane.weight},
                     {"window", lane.window}});
    if (!lane.rail.empty()) trees.back()["rail"] = lane.rail;
  }
  return {{"aggregators", aggregators.list()}, {"addresses", addresses.list()}, {"lanes", std::move(trees)}};
}

Result<std::vector<LaneTree>> lanes_from(const json& trees, std::size_t ranks) {
  const auto aggregators = trees.at("aggregators").get<std::vector<NamedAggregator>>();
  const auto addresses = trees.at("addresses").get<std::vector<Address>>();
  const auto endpoint = [&](const json& number) {
    const Address& address = addresses.at(number.get<std::size_t>());
    return Endpoint{address.first, address.second};
  };
  std::vector<LaneTree> lanes;
  for (const json& from : trees.at("lanes")) {
    LaneTree& lane = lanes.emplace_back();
    lane.route = from.value("route", static_cast<std::uint32_t>(lanes.size() - 1));
    lane.rail = from.value("rail", "");
    lane.weight = from.value("weight", 1U);
    lane.window = from.value("window", 0U);
    for (const json& node : from.at("nodes")) {
      const auto& [name, incarnation, host, data_changes] = aggregators.at(node.at(0).get<std::size_t>());
      lane.nodes.push_back({.aggregator = name,
                            .incarnation = incarnation,
                            .host = host,
                            .data = endpoint(node.at(1)),
                            .parent = node.at(2),
                            .up = endpoint(node.at(3)),
                            .data_changes = data_changes});
    }
    auto leaves = from_runs(from.at("leaves"), ranks);
    if (!leaves) return std::unexpected(leaves.error());
    lane.leaf_of_rank = std::move(*leaves);
    if (auto ok = lane.finish(); !ok) return fail(Errc::bad_argument, "the record: " + ok.error().message);
  }
  return lanes;
}

Result<OpenedRecord> opened_from(const json& from, const std::vector<std::string>& hosts) {
  auto lanes = lanes_from(from.at("trees"), hosts.size());
  if (!lanes) return std::unexpected(lanes.error());
  return OpenedRecord{
      .group = {.id = from.at("id"),
                .job = from.at("job"),
                .hosts = hosts,
                .lanes_wanted = from.at("lanes_wanted"),
                .window_wanted = from.value("window_wanted", 0U),
                .window = from.at("window"),
                .segment_bytes = from.at("segment_bytes"),
                .levels_wanted = from.at("levels_wanted"),
                .epoch = from.at("epoch"),
                .lanes = std::move(*lanes),
                .reason = from.at("reason"),
                .failed = {},
                .created_at = from.at("created_at"),
                .packet_security = static_cast<PacketSecurity>(from.at("packet_security").get<unsigned>()),
                .exchange_key = from.at("exchange_key"),
                .rates = rates_from(from),
                .link_rate = from.value("link_rate", std::uint64_t{0}),
                .lane_weights = from.value("lane_weights", false),
                .form_senders = form_senders_from_string(from.value("form_senders", "")).value_or(FormSenders::nobody),
                .rail = from.value("rail", ""),
                .owner = from.value("owner", ""),
                .priority = priority_from_string(from.value("priority", "")).value_or(Priority::normal),
                .code = from.value("code", "")},
      .issued_at = from.at("issued_at"),
      .fence = from.value("fence", std::uint64_t{0})};
}

}  // namespace

RecordSeal::RecordSeal(const SigningKey& key) : key_(hmac_sha256(key.seed(), bytes_of(kPurpose))) {}

Digest RecordSeal::digest_of(const std::vector<std::string>& hosts) const {
  std::string all;
  for (const std::string& host : hosts) all += host + '\n';
  return hmac_sha256(key_, bytes_of(all));
}

std::string RecordSeal::seal(const GroupRecord& group, std::int64_t now_s, std::uint64_t fence) const {
  const std::string text = json{
      {"id", group.id},
      {"job", group.job},
      {"hosts", to_hex(digest_of(group.hosts))},
      {"lanes_wanted", group.lanes_wanted},
      {"window_wanted", group.window_wanted},
      {"window", group.window},
      {"segment_bytes", group.segment_bytes},
      {"levels_wanted", group.levels_wanted},
      {"epoch", group.epoch},
      {"trees", trees_of(group.lanes)},
      {"reason", group.reason},
      {"rates", rates_to_json(group.rates)},
      {"link_rate", group.link_rate},
      {"lane_weights", group.lane_weights},
      {"form_senders", std::string(to_string(group.form_senders))},
      {"rail", group.rail},
      {"owner", group.owner},
      {"priority", std::string(to_string(group.priority))},
      {"code", group.code},
      {"created_at", group.created_at},
      {"packet_security", static_cast<unsigned>(group.packet_security)},
      {"exchange_key", group.exchange_key},
      {"issued_at", now_s},
      {"fence", fence}}.dump();
  const Digest tag = hmac_sha256(key_, bytes_of(text));
  std::vector<std::byte> sealed(tag.begin(), tag.end());
  sealed.insert(sealed.end(), bytes_of(text).begin(), bytes_of(text).end());
  return to_base64(sealed);
}

Result<OpenedRecord> RecordSeal::open(const std::string& sealed, const std::vector<std::string>& hosts) const {
  const auto bytes = from_base64(sealed);
  if (!bytes || bytes->size() < kDigestBytes) {
    return fail(Errc::bad_argument,
                "'record' is no record: send the one that this manager gave with the group's trees");
  }
  const auto text = std::span(*bytes).subspan(kDigestBytes);
  if (!same_bytes(std::span(*bytes).first(kDigestBytes), hmac_sha256(key_, text))) {
    return fail(Errc::bad_argument, "another manager made 'record': it is sealed with another key");
  }
  try {
    const json from = json::parse(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
    if (from.at("hosts") != to_hex(digest_of(hosts))) {
      return fail(Errc::mismatch, "'ranks' are not the ranks of the group in 'record'");
    }
    return opened_from(from, hosts);
  } catch (const std::exception& error) {  // another version has sealed it
    return fail(Errc::bad_argument, "'record' cannot be read: " + std::string(error.what()));
  }
}

}  // namespace tributary::manager

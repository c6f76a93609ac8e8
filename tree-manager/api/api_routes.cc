// The routes: each reads the input, calls the cluster and writes the answer.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <ranges>

#include "service-kit/http/query.h"
#include "tree-manager/api/api.h"
#include "tree-manager/api/json_input.h"
#include "tree-manager/api/json_output.h"
#include "tree-manager/api/replies.h"
#include "tributary/protocol/link_rate.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::uint64_t kAny = INT64_MAX;  // also the most that the store keeps

Result<std::uint64_t> group_id(const std::string& text) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Errc::bad_argument, "a group's number is expected in the path");
  }
  return id;
}

/// Reads a query such as "a=1&b=2": the numbers of exactly these names, in the order of `names`.
Result<std::vector<std::uint32_t>> query_numbers(std::string_view query, const std::vector<std::string_view>& names) {
  const auto values = service::read_query(query);
  std::vector<std::uint32_t> numbers;
  std::string wanted;
  for (const std::string_view name : names) {
    wanted += (wanted.empty() ? "" : "&") + std::string(name) + "=N";
    const std::string text = values ? service::value_of(*values, name).value_or("") : "";
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) numbers.push_back(number);
  }
  if (numbers.size() == names.size() && values->size() == names.size()) return numbers;
  return fail(Errc::bad_argument, "the query is " + wanted);
}

/// Reads a query such as "name=a,b"; an empty query has no names. The cluster checks the names.
Result<std::vector<std::string>> query_names(std::string_view query, std::string_view name) {
  std::vector<std::string> names;
  if (query.empty()) return names;
  const auto values = service::read_query(query);
  const auto list = values && values->size() == 1 ? service::value_of(*values, name) : std::nullopt;
  if (!list) {
    return fail(Errc::bad_argument, "the query is " + std::string(name) + "= and names with commas between them");
  }
  for (const auto part : std::views::split(*list, ',')) names.emplace_back(part.begin(), part.end());
  return names;
}

/// Reads "host:port"; a wildcard host stands for the address from which the request came.
Result<Endpoint> endpoint_of(const char* name, const std::string& text, const std::string& remote_address) {
  auto endpoint = parse_endpoint(text);
  if (!endpoint) return fail(Errc::bad_argument, "'" + std::string(name) + "': " + endpoint.error().message);
  if (endpoint->host == "0.0.0.0" || endpoint->host == "::") {
    constexpr std::string_view kMapped = "::ffff:";
    endpoint->host = remote_address.starts_with(kMapped) ? remote_address.substr(kMapped.size()) : remote_address;
  }
  return endpoint;
}

Result<GroupSpec> group_spec(const std::string& body) {
  JsonInput in(body);
  GroupSpec spec;
  spec.job = in.text("job", "");
  spec.user = in.text("user", "");
  spec.processes = static_cast<std::uint32_t>(in.number("processes", 1, UINT32_MAX, 0));
  spec.hosts = in.texts("ranks");
  spec.lanes = static_cast<std::uint32_t>(in.number("lanes", 0, kLanesMax, 0));
  spec.window = static_cast<std::uint32_t>(in.number("window", 1, kWindowMax, 0));
  spec.segment_bytes = static_cast<std::uint32_t>(in.number("segment_bytes", kSegmentBytesMin, kSegmentBytesMax, 0));
  spec.request_id = in.text("request_id", "");
  spec.levels = static_cast<std::uint32_t>(in.number("levels", 1, kTreeLevelsMax, 0));
  spec.link_rate_bits_per_second = in.number("link_rate_bits_per_second", 0, kLinkRateMax, 0);
  spec.lane_weights = in.flag("lane_weights", false);
  spec.rail = in.text("rail", "");
  const auto security = parse_packet_security(in.text("packet_security", "off"));
  spec.exchange_key = in.text("exchange_key", "");
  spec.aggregator = in.text("aggregator", "");
  const auto priority = priority_from_string(in.text("priority", "normal"));
  const auto senders = form_senders_from_string(in.text("form_senders", "nobody"));
  if (auto ok = in.finish(); !ok) return std::unexpected(ok.error());
  if (!security) return fail(Errc::bad_argument, "'packet_security': " + security.error().message);
  if (!priority) return fail(Errc::bad_argument, "'priority' is not low, normal or high");
  if (!senders) return fail(Errc::bad_argument, "'form_senders' is not nobody, aggregators or members");
  spec.priority = *priority;
  spec.form_senders = *senders;
  spec.packet_security = *security;
  return spec;
}

/// Answers with the group's trees, or notes the reason why it has none.
HttpReply granted(const Result<GroupGrant>& grant, Refusal& refusal) {
  if (!grant) return error_reply(grant.error());
  refusal = {.code = grant->code, .reason = grant->descriptor.reason};
  if (grant->code.empty()) refusal = {};
  return json_reply(to_json(*grant));
}

/// Reads what an aggregator says about late ranks. Their hosts are not in it: the manager knows them.
Result<std::vector<LateRank>> late_ranks_in(JsonInput& load) {
  constexpr std::uint64_t kMillisecondsMax = UINT32_MAX;
  std::vector<LateRank> late;
  for (JsonInput& one : load.objects("late", kLateRanksMax)) {
    const auto time = [&one](const char* name) {
      return std::chrono::milliseconds(one.number(name, 0, kMillisecondsMax));
    };
    late.push_back({.group = one.number("group", 0, kAny),
                    .rank = static_cast<std::uint32_t>(one.number("rank", 0, UINT32_MAX)),
                    .lag = time("lag_milliseconds"),
                    .late_for = time("late_milliseconds"),
                    .operations_behind = one.number("operations_behind", 0, kAny),
                    .cause = late_cause_from_string(one.text("cause", ""))});
    if (auto ok = one.finish(); !ok) return std::unexpected(ok.error());
  }
  return late;
}

/// Lets the audit log name sealed connections that have ended because of changed records since the last renewal.
void note_changed_records(const Cluster& cluster, const std::string& aggregator, std::uint64_t count, Refusal& note) {
  const auto before = cluster.aggregator(aggregator);
  if (!before || count <= before->load.changed_records) return;
  note = {.code = std::string(code_of(Reason::changed_records)),
          .reason = std::to_string(count - before->load.changed_records) +
                    " sealed connections ended because bytes were changed on their way"};
}

/// Returns the groups that the caller may change.
GroupOwner owner_of(const Proof& caller) {
  return {.tenant = caller.identity->tenant, .job = caller.identity->job};
}

/// Returns the name of the caller that put a topology, for the log.
std::string who_put(const std::string& address, const Identity& caller) {
  return address + (caller.old_secret ? " with the aggregator token" : " as " + caller.name);
}

}  // namespace

HttpReply Api::register_aggregator(const Call& call) {
  JsonInput in(call.body);
  AggregatorSpec spec{.name = in.text("name", ""), .host = in.text("host")};
  const std::string data = in.text("data");
  const auto more = in.texts("data_more", false);
  spec.data_down = in.numbers("data_down", kDataAddressesMax - 1, kDataAddressesMax);
  const std::string http = in.text("http");
  spec.memory_bytes = in.number("memory_bytes", 0, kAny);
  spec.children_max = static_cast<std::uint32_t>(in.number("children_max", 1, kChildrenMax, kChildrenMax));
  spec.line_rate_bits_per_second = in.number("line_rate_bits_per_second", 0, kAny, 0);
  spec.version = in.text("version", "");
  spec.exchange_key = in.text("exchange_key", "");
  spec.draining = in.flag("draining", false);
  spec.incarnation = in.number("incarnation", 0, kAny, 0);
  const std::uint64_t fence_seen = in.number("fence", 0, kFenceMax, 0);
  const auto security = parse_packet_security(in.text("security", "off"));
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  if (!security) return error_reply(400, "'security': " + security.error().message);
  spec.security = *security;
  auto data_endpoint = endpoint_of("data", data, call.head.remote_address);
  if (!data_endpoint) return error_reply(data_endpoint.error());
  if (more.size() >= kDataAddressesMax) {
    return error_reply(400, "'data_more' has more than " + std::to_string(kDataAddressesMax - 1) + " addresses");
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    auto one = endpoint_of(("data_more[" + std::to_string(i) + "]").c_str(), more[i], call.head.remote_address);
    if (!one) return error_reply(one.error());
    spec.data_more.push_back(std::move(*one));
  }
  auto http_endpoint = endpoint_of("http", http, call.head.remote_address);
  if (!http_endpoint) return error_reply(http_endpoint.error());
  spec.data = std::move(*data_endpoint);
  spec.http = std::move(*http_endpoint);
  if (auto ok = call.cluster->hear_fence(fence_seen); !ok) return error_reply(ok.error());
  const Identity& caller = *call.caller.identity;
  if (!caller.old_secret) spec.owner = caller.name;
  const auto registered = call.cluster->register_aggregator(spec);
  if (!registered) return error_reply(registered.error());
  call.notes.object = "aggregator " + registered->name;
  return json_reply({{"name", registered->name},
                     {"incarnation", registered->incarnation},
                     {"lease_seconds", registered->lease_seconds},
                     {"late_max", kLateRanksMax},
                     {"public_key", to_base64(registered->public_key)},
                     {"exchange_key", to_base64(registered->exchange_key)},
                     {"fence", call.cluster->fence()}});
}

HttpReply Api::list_aggregators(const Call& call) {
  json list = json::array();
  for (const AggregatorView& view : call.cluster->aggregators()) {
    list.push_back(to_json(view, sees_all(call.caller)));
  }
  return json_reply({{"aggregators", std::move(list)}});
}

HttpReply Api::get_aggregator(const Call& call) {
  const auto view = call.cluster->aggregator(call.parameters[0]);
  return view ? json_reply(to_json(*view, sees_all(call.caller))) : error_reply(view.error());
}

HttpReply Api::delete_aggregator(const Call& call) {
  return done_reply(call.cluster->remove_aggregator(call.parameters[0]));
}

HttpReply Api::renew_aggregator(const Call& call) {
  JsonInput in(call.body);
  const auto incarnation = in.optional_number("incarnation", 0, kAny);
  const auto down = in.numbers("data_down", kDataAddressesMax - 1, kDataAddressesMax);
  const auto drains = in.optional_flag("draining");
  const std::uint64_t fence_seen = in.number("fence", 0, kFenceMax, 0);
  JsonInput load_in = in.object("load");
  auto late = late_ranks_in(load_in);
  if (!late) return error_reply(late.error());
  const AggregatorLoad load{.memory_in_use_bytes = load_in.number("memory_in_use_bytes", 0, kAny, 0),
                            .lanes_active = load_in.number("lanes_active", 0, kAny, 0),
                            .sessions = load_in.number("sessions", 0, kAny, 0),
                            .contribution_bytes_total = load_in.number("contribution_bytes_total", 0, kAny, 0),
                            .changed_records = load_in.number("changed_records", 0, kAny, 0),
                            .late = std::move(*late)};
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  if (auto ok = load_in.finish(); !ok) return error_reply(ok.error());
  if (auto ok = call.cluster->hear_fence(fence_seen); !ok) return error_reply(ok.error());
  if (load.changed_records != 0)
    note_changed_records(*call.cluster, call.parameters[0], load.changed_records, call.notes.no_trees);
  const auto draining = call.cluster->renew_aggregator(call.parameters[0], incarnation, load, down, drains);
  if (!draining) return error_reply(draining.error());
  const auto keys = call.cluster->signing().now();
  return json_reply({{"state", *draining ? "draining" : "active"},
                     {"fence", call.cluster->fence()},
                     {"late_max", kLateRanksMax},
                     {"public_key", to_base64(keys->signing.public_key())},
                     {"exchange_key", to_base64(keys->exchange.public_key())}});
}

HttpReply Api::create_group(const Call& call) {
  auto spec = group_spec(call.body);
  if (!spec) return error_reply(spec.error());
  const Identity& caller = *call.caller.identity;
  if (!caller.job.empty()) {
    if (spec->job.empty()) spec->job = caller.job;
    if (spec->job != caller.job) {
      return error_reply(403,
                         "the token is good only for job '" + caller.job + "', and this is job '" + spec->job + "'");
    }
  }
  spec->owner = caller.tenant;
  const auto grant = call.cluster->create_group(*spec);
  if (grant) call.notes.object = "group " + std::to_string(grant->descriptor.group);
  return granted(grant, call.notes.no_trees);
}

HttpReply Api::list_groups(const Call& call) {
  json list = json::array();
  for (const GroupView& view : call.cluster->groups()) {
    if (sees(call.caller, view.record->owner, view.record->job)) list.push_back(to_json(view, false));
  }
  return json_reply({{"groups", std::move(list)}});
}

HttpReply Api::get_group(const Call& call) {
  const auto id = group_id(call.parameters[0]);
  if (!id) return error_reply(id.error());
  const auto view = call.cluster->group(*id);
  if (view && !sees(call.caller, view->record->owner, view->record->job)) return error_reply(no_group(*id).error());
  return view ? json_reply(to_json(*view, true)) : error_reply(view.error());
}

HttpReply Api::delete_group(const Call& call) {
  const auto id = group_id(call.parameters[0]);
  if (!id) return error_reply(id.error());
  const auto failed = query_names(call.head.query, "failed");
  return failed ? done_reply(call.cluster->remove_group(*id, *failed)) : error_reply(failed.error());
}

HttpReply Api::renew_group(const Call& call) {
  const auto id = group_id(call.parameters[0]);
  if (!id) return error_reply(id.error());
  JsonInput in(call.body);
  const std::string record = in.text("record", "");
  const auto hosts = in.texts("ranks", !record.empty());
  const bool want_record = in.flag("want_record", false);
  std::optional<GroupTraffic> traffic;
  JsonInput counts = in.object("traffic");
  if (!counts.empty()) {
    const auto count = [&counts](const char* name) { return counts.number(name, 0, kAny); };
    traffic = {.operations = count("operations"),
               .bytes_in_network = count("bytes_in_network"),
               .bytes_between_ranks = count("bytes_between_ranks"),
               .bytes_in_shared_memory = count("bytes_in_shared_memory")};
  }
  if (auto ok = counts.finish(); !ok) return error_reply(ok.error());
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  const auto lease = record.empty() ? call.cluster->renew_group(*id, traffic)
                                    : call.cluster->adopt_group(*id, record, hosts, owner_of(call.caller));
  if (!lease) return error_reply(lease.error());
  json body = to_json(*lease);
  body["fence"] = call.cluster->fence();
  if (want_record) {
    auto fresh = call.cluster->sealed_record(*id);
    if (!fresh) return error_reply(fresh.error());
    body["record"] = std::move(*fresh);
  }
  return json_reply(body);
}

HttpReply Api::rebuild_group(const Call& call) {
  const auto id = group_id(call.parameters[0]);
  if (!id) return error_reply(id.error());
  JsonInput in(call.body);
  const auto epoch = static_cast<std::uint32_t>(in.number("epoch", 0, UINT32_MAX));
  const auto failed = in.texts("failed", false);
  const bool in_use = in.flag("in_use", false);
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  return granted(call.cluster->rebuild_group(*id, epoch, failed, in_use), call.notes.no_trees);
}

HttpReply Api::get_tokens(const Call& call) {
  const auto id = group_id(call.parameters[0]);
  if (!id) return error_reply(id.error());
  const auto numbers = query_numbers(call.head.query, {"epoch", "from", "count"});
  if (!numbers) return error_reply(numbers.error());
  const auto page = call.cluster->places(*id, (*numbers)[0], (*numbers)[1], (*numbers)[2]);
  return page ? json_reply(to_json(*page)) : error_reply(page.error());
}

HttpReply Api::list_trees(const Call& call) {
  json list = json::array();
  const auto append = [&](const GroupView& view) {
    for (json& lane : trees_json(*view.record)) list.push_back(std::move(lane));
  };
  if (call.head.query.empty()) {
    for (const GroupView& view : call.cluster->groups()) {
      if (sees(call.caller, view.record->owner, view.record->job)) append(view);
    }
    return json_reply({{"trees", std::move(list)}});
  }
  const auto values = service::read_query(call.head.query);
  const auto wanted = values && values->size() == 1 ? service::value_of(*values, "group") : std::nullopt;
  const auto id = group_id(wanted.value_or(""));
  if (!id) return error_reply(400, "the query is group= and a group's number");
  const auto view = call.cluster->group(*id);
  if (!view) return error_reply(view.error());
  if (!sees(call.caller, view->record->owner, view->record->job)) return error_reply(no_group(*id).error());
  append(*view);
  return json_reply({{"trees", std::move(list)}});
}

HttpReply Api::plan(const Call& call) {
  const auto spec = group_spec(call.body);
  if (!spec) return error_reply(spec.error());
  const auto plan = call.cluster->plan(*spec);
  return plan ? json_reply(to_json(*plan, spec->hosts)) : error_reply(plan.error());
}

HttpReply Api::get_topology(const Call& call) {
  const auto topology = call.cluster->topology();
  json body = to_json(*topology);
  body["source"] = call.cluster->topology_from_file() ? "file" : topology->text.empty() ? "default" : "api";
  return json_reply(body);
}

HttpReply Api::put_topology(const Call& call) {
  return done_reply(call.cluster->put_topology(call.body, who_put(call.head.remote_address, *call.caller.identity)));
}

}  // namespace tributary::manager

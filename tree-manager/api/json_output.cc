#include "tree-manager/api/json_output.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace tributary::manager {
namespace {

using nlohmann::json;

double seconds(std::int64_t milliseconds) {
  return static_cast<double>(milliseconds) / 1000;
}

/// Recursion is bounded: a tree has at most kTreeLevelsMax levels.
json node_json(const LaneTree& tree, std::uint32_t index, const std::vector<std::string>& hosts) {
  const TreeNode& node = tree.nodes[index];
  json children = json::array();
  for (const TreeChild& child : node.children) {
    if (child.kind == ChildKind::rank) {
      children.push_back({{"rank", child.index}, {"host", hosts[child.index]}});
    } else {
      children.push_back(node_json(tree, child.index, hosts));
    }
  }
  return {{"aggregator", node.aggregator},
          {"host", node.host},
          {"data", to_string(node.data)},
          {"level", node.level},
          {"children", std::move(children)}};
}

/// `window`: the window of a lane that has none of its own.
json lane_json(const LaneTree& tree, std::uint32_t window, const std::vector<std::string>& hosts) {
  json result = {{"levels", tree.levels},
                 {"weight", tree.weight},
                 {"window", tree.window != 0 ? tree.window : window},
                 {"aggregators", tree.nodes.size()},
                 {"root", node_json(tree, tree.root, hosts)}};
  if (!tree.rail.empty()) result["rail"] = tree.rail;
  return result;
}

json lanes_json(const std::vector<LaneTree>& lanes, std::uint32_t window, const std::vector<std::string>& hosts) {
  json list = json::array();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    list.push_back(lane_json(lanes[lane], window, hosts));
    list.back()["lane"] = lane;
  }
  return list;
}

}  // namespace

const char* state_of(const AggregatorView& view) {
  if (view.record.expired) return "expired";
  if (view.record.draining) return "draining";
  if (view.suspected) return "suspected";
  return view.record.resuming ? "resuming" : "active";
}

json late_json(const std::vector<LateRank>& late) {
  json list = json::array();
  for (const LateRank& one : late) {
    list.push_back({{"rank", one.rank},
                    {"host", one.host},
                    {"lag_milliseconds", one.lag.count()},
                    {"late_milliseconds", one.late_for.count()},
                    {"operations_behind", one.operations_behind},
                    {"cause", row_of(one.cause).name}});
  }
  return list;
}

json to_json(const GroupTraffic& traffic) {
  return {{"operations", traffic.operations},
          {"bytes_in_network", traffic.bytes_in_network},
          {"bytes_between_ranks", traffic.bytes_between_ranks},
          {"bytes_in_shared_memory", traffic.bytes_in_shared_memory}};
}

json to_json(const AggregatorView& view, bool names_groups) {
  const AggregatorRecord& r = view.record;
  json addresses = json::array();
  for (const DataAddress& one : r.data) addresses.push_back({{"at", to_string(one.at)}, {"live", one.live}});
  json result = {{"name", r.name},
                 {"state", state_of(view)},
                 {"host", r.host},
                 {"placed", view.placed},
                 {"data", to_string(r.data.front().at)},
                 {"addresses", std::move(addresses)},
                 {"http", to_string(r.http)},
                 {"memory_bytes", r.memory_bytes},
                 {"memory_reserved_bytes", view.memory_reserved_bytes},
                 {"children_max", r.children_max},
                 {"line_rate_bits_per_second", r.line_rate_bits_per_second},
                 {"version", r.version},
                 {"owner", r.owner},
                 {"security", std::string(to_string(r.security))},
                 {"incarnation", r.incarnation},
                 {"registered_at", r.registered_at},
                 {"lease_seconds_left", seconds(view.lease_milliseconds_left)},
                 {"load",
                  {{"memory_in_use_bytes", view.load.memory_in_use_bytes},
                   {"lanes_active", view.load.lanes_active},
                   {"sessions", view.load.sessions},
                   {"contribution_bytes_total", view.load.contribution_bytes_total}}}};
  if (view.suspected) {
    result["suspected"]["since"] = view.suspected->since;
    if (names_groups) result["suspected"]["group"] = view.suspected->group;
  }
  return result;
}

json to_json(const GroupView& view, bool details) {
  const GroupRecord& r = *view.record;
  std::uint32_t levels = 0;
  for (const LaneTree& lane : r.lanes) levels = std::max(levels, lane.levels);
  json result = {{"group", r.id},
                 {"job", r.job},
                 {"user", r.user},
                 {"owner", r.owner},
                 {"age_seconds", view.age_seconds},
                 {"epoch", r.epoch},
                 {"ranks", r.hosts.size()},
                 {"processes", r.processes == 0 ? r.hosts.size() : std::size_t{r.processes}},
                 {"host_count", std::set<std::string_view>(r.hosts.begin(), r.hosts.end()).size()},
                 {"path", r.lanes.empty() ? "fallback" : "in-network"},
                 {"lanes", r.lanes.size()},
                 {"lanes_wanted", r.lanes_wanted},
                 {"levels", levels},
                 {"window", r.window},
                 {"segment_bytes", r.segment_bytes},
                 {"reason", r.reason},
                 {"code", r.code},
                 {"priority", std::string(to_string(r.priority))},
                 {"created_at", r.created_at},
                 {"adopted_at", r.adopted_at},
                 {"lease_seconds_left", seconds(view.lease_milliseconds_left)}};
  if (view.traffic) result["traffic"] = to_json(*view.traffic);
  result["late"] = late_json(view.late);
  if (!details) return result;
  json failed = json::array();
  for (const FailedAggregator& it : r.failed) {
    failed.push_back({{"name", it.name}, {"incarnation", it.incarnation}, {"since", it.since}});
  }
  result["rates"] = to_json(r.rates);
  result["hosts"] = r.hosts;
  result["failed"] = std::move(failed);
  result["trees"] = lanes_json(r.lanes, r.window, r.hosts);
  return result;
}

json to_json(const GroupGrant& grant) {
  json result = to_json(grant.descriptor);
  result["retry_after_seconds"] = grant.retry_after_seconds;
  result["record"] = grant.record;
  if (!grant.code.empty()) result["code"] = grant.code;
  return result;
}

json to_json(const GroupLeaseView& lease) {
  json result = {{"lease_seconds", lease.lease_seconds},
                 {"epoch", lease.epoch},
                 {"rebuild_advised", lease.rebuild_advised},
                 {"reason", lease.reason}};
  if (!lease.code.empty()) result["code"] = lease.code;
  if (lease.leave) result["leave_trees"] = true;
  if (lease.rates != PathRates{}) result["rates"] = to_json(lease.rates);
  if (!lease.late.empty()) result["late"] = late_json(lease.late);
  return result;
}

json to_json(const PlanView& view, const std::vector<std::string>& hosts) {
  return {{"trees", lanes_json(view.plan.lanes, view.plan.window, hosts)},
          {"reason", view.plan.reason},
          {"estimated_seconds", view.plan.estimated_seconds},
          {"rates", to_json(view.plan.rates)},
          {"window", view.plan.window},
          {"segment_bytes", view.segment_bytes}};
}

json trees_json(const GroupRecord& group) {
  json list = lanes_json(group.lanes, group.window, group.hosts);
  for (json& lane : list) {
    lane["group"] = group.id;
    lane["job"] = group.job;
    lane["epoch"] = group.epoch;
  }
  return list;
}

}  // namespace tributary::manager

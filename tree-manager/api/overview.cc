#include "tree-manager/api/overview.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "service-kit/http/query.h"
#include "tree-manager/api/json_output.h"
#include "tree-manager/api/replies.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

json fabric_json(const Topology& topology) {
  return {{"kind", std::string(to_string(topology.fabric))},
          {"hosts", topology.hosts.size()},
          {"switches", topology.switches.size()},
          {"links", topology.links.size()}};
}

json aggregator_json(const AggregatorView& view) {
  return {{"name", view.record.name},
          {"state", state_of(view)},
          {"host", view.record.host},
          {"memory_bytes", view.record.memory_bytes},
          {"memory_reserved_bytes", view.memory_reserved_bytes},
          {"lanes_active", view.load.lanes_active},
          {"contribution_bytes_total", view.load.contribution_bytes_total}};
}

json group_json(const GroupView& view) {
  const GroupRecord& record = *view.record;
  std::uint32_t levels = 0;
  for (const LaneTree& lane : record.lanes) levels = std::max(levels, lane.levels);
  json out = {{"group", record.id},
              {"job", record.job},
              {"tenant", record.owner},
              {"user", record.user},
              {"ranks", record.hosts.size()},
              {"age_seconds", view.age_seconds},
              {"epoch", record.epoch},
              {"lanes", record.lanes.size()},
              {"levels", levels},
              {"reason", record.reason},
              {"code", record.code},
              {"late", late_json(view.late)}};
  if (view.traffic) out["traffic"] = to_json(*view.traffic);
  return out;
}

struct Wanted {
  bool aggregators = true;
  std::string host{};  // empty: groups on any hosts
};

Result<Wanted> wanted_of(const std::string& query) {
  const auto wrong = [] { return fail(Errc::bad_argument, "the query has at most only=groups and host=TEXT"); };
  Wanted wanted;
  if (query.empty()) return wanted;
  const auto values = service::read_query(query);
  if (!values) return wrong();
  const auto only = service::value_of(*values, "only");
  const auto host = service::value_of(*values, "host");
  const std::size_t known = (only ? 1U : 0U) + (host ? 1U : 0U);
  if (values->size() != known || (only && *only != "groups")) return wrong();
  wanted.aggregators = !only;
  wanted.host = host.value_or("");
  return wanted;
}

bool is_on(const GroupRecord& group, const std::string& host) {
  return host.empty() || std::ranges::any_of(group.hosts, [&](const std::string& it) { return it.contains(host); });
}

}  // namespace

HttpReply overview_reply(const Cluster& cluster, const std::string& query, std::uint64_t last_event,
                         const std::function<bool(const GroupRecord&)>& sees) {
  const auto wanted = wanted_of(query);
  if (!wanted) return error_reply(wanted.error());
  json out = {{"last_event", last_event}, {"fabric", fabric_json(*cluster.topology())}};
  json groups = json::array();
  for (const GroupView& view : cluster.groups()) {
    if (sees(*view.record) && is_on(*view.record, wanted->host)) groups.push_back(group_json(view));
  }
  out["groups"] = std::move(groups);
  if (!wanted->aggregators) return json_reply(out);
  json aggregators = json::array();
  for (const AggregatorView& view : cluster.aggregators()) aggregators.push_back(aggregator_json(view));
  out["aggregators"] = std::move(aggregators);
  return json_reply(out);
}

}  // namespace tributary::manager

#include "client/cli/manager/listings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "client/cli/manager/tree_drawing.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/tuning/explain_local.h"
#include "tree-manager/topology/name_range.h"

namespace tributary::cli {
namespace {

using manager_client::ManagerClient;
using nlohmann::json;

std::uint64_t number(const json& from, const char* member) {
  return from.at(member).get<std::uint64_t>();
}
std::string text(const json& from, const char* member) {
  return from.at(member).get<std::string>();
}
std::string count_text(const json& from, const char* member) {
  return std::to_string(number(from, member));
}
std::string lease_text(const json& from) {
  return fmt::format("{:.0f} s", std::max(0.0, from.at("lease_seconds_left").get<double>()));
}

GetDocument get(std::string path) {
  return [path = std::move(path)](ManagerClient& client) { return client.get(path); };
}

int usage(const std::string& message) {
  std::fprintf(stderr, "tributary: %s\n", message.c_str());
  return kExitUsage;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Joins several documents of the manager into one.
Result<json> summary(ManagerClient& client, const std::string& url) {
  json parts;
  for (const char* part : {"version", "aggregators", "groups", "topology"}) {
    auto answer = client.get(std::string("/v1/") + part);
    if (!answer) return std::unexpected(answer.error());
    parts[part] = std::move(*answer);
  }
  json aggregators = {{"active", 0}, {"draining", 0}, {"expired", 0}};
  std::uint64_t memory = 0, reserved = 0, in_network = 0, ranks = 0, lanes = 0;
  for (const json& one : parts["aggregators"].at("aggregators")) {
    aggregators[text(one, "state")] = aggregators.value(text(one, "state"), 0) + 1;
    if (text(one, "state") == "expired") continue;
    memory += number(one, "memory_bytes");
    reserved += number(one, "memory_reserved_bytes");
  }
  const json& groups = parts["groups"].at("groups");
  for (const json& one : groups) {
    in_network += text(one, "path") == "in-network" ? 1U : 0U;
    ranks += number(one, "ranks");
    lanes += number(one, "lanes");
  }
  aggregators["memory_bytes"] = memory;
  aggregators["memory_reserved_bytes"] = reserved;
  const json& topology = parts["topology"];
  return json{
      {"manager", url},
      {"version", text(parts["version"], "version")},
      {"protocol_version", number(parts["version"], "protocol_version")},
      {"aggregators", std::move(aggregators)},
      {"groups",
       {{"in_network", in_network}, {"fallback", groups.size() - in_network}, {"ranks", ranks}, {"lanes", lanes}}},
      {"topology",
       {{"fabric", text(topology, "fabric")},
        {"source", text(topology, "source")},
        {"hosts", topology.at("hosts").size()},
        {"switches", topology.at("switches").size()}}}};
}

std::string status_text(const json& s) {
  const json& a = s.at("aggregators");
  const json& g = s.at("groups");
  const json& t = s.at("topology");
  return fmt::format("manager      {}, version {}, protocol {}\n", text(s, "manager"), text(s, "version"),
                     number(s, "protocol_version")) +
         fmt::format("aggregators  {} active, {} draining, {} expired; {} of {} reserved\n", number(a, "active"),
                     number(a, "draining"), number(a, "expired"), bytes_text(number(a, "memory_reserved_bytes")),
                     bytes_text(number(a, "memory_bytes"))) +
         fmt::format("groups       {} in-network, {} on fallback; {} ranks, {} lanes\n", number(g, "in_network"),
                     number(g, "fallback"), number(g, "ranks"), number(g, "lanes")) +
         fmt::format("topology     {} ({}): {} hosts, {} switches\n", text(t, "fabric"), text(t, "source"),
                     number(t, "hosts"), number(t, "switches"));
}

/// Returns all addresses of an aggregator; a manager of an older version knows only one.
std::string addresses_text(const json& aggregator) {
  std::string list;
  for (const json& one : aggregator.value("addresses", json::array())) {
    list += (list.empty() ? "" : ",") + text(one, "at") + (one.at("live").get<bool>() ? "" : "(down)");
  }
  return list.empty() ? text(aggregator, "data") : list;
}

std::string aggregators_text(const json& document) {
  Table table(
      {"NAME", "STATE", "HOST", "DATA", "RESERVED", "MEMORY", "LANES", "SESSIONS", "SUMMED", "LEASE", "VERSION"});
  const json one = json::array({document});
  for (const json& a : document.contains("aggregators") ? document.at("aggregators") : one) {
    const json& load = a.at("load");
    table.add({text(a, "name"), text(a, "state"), text(a, "host") + (a.at("placed").get<bool>() ? "" : " (unknown)"),
               addresses_text(a), bytes_text(number(a, "memory_reserved_bytes")), bytes_text(number(a, "memory_bytes")),
               count_text(load, "lanes_active"), count_text(load, "sessions"),
               bytes_text(number(load, "contribution_bytes_total")), lease_text(a), text(a, "version")});
  }
  return table.text();
}

/// Writes the manager's 0 as the user's auto.
std::string lanes_wanted_text(const json& group) {
  return number(group, "lanes_wanted") == 0 ? "auto" : count_text(group, "lanes_wanted");
}

std::string groups_text(const json& document) {
  Table table({"GROUP", "JOB", "EPOCH", "RANKS", "PATH", "LANES", "LEVELS", "WINDOW", "SEGMENT", "LEASE", "REASON"});
  for (const json& g : document.at("groups")) {
    table.add({count_text(g, "group"), text(g, "job"), count_text(g, "epoch"), count_text(g, "ranks"), text(g, "path"),
               count_text(g, "lanes") + "/" + lanes_wanted_text(g), count_text(g, "levels"), count_text(g, "window"),
               bytes_text(number(g, "segment_bytes")), lease_text(g), text(g, "reason")});
  }
  return table.text();
}

std::string group_text(const json& g) {
  std::string out = groups_text({{"groups", json::array({g})}});
  for (const json& failed : g.at("failed"))
    out += fmt::format("avoids {}, which the group saw fail\n", printable(text(failed, "name")));
  const std::string drawing = draw_trees(g.at("trees"));
  return drawing.empty() ? out : out + "\n" + drawing;
}

std::string plan_text(const json& p) {
  std::string out = draw_trees(p.at("trees"));
  if (const std::string reason = text(p, "reason"); !reason.empty()) out += printable(reason) + "\n";
  if (p.at("trees").empty()) return out + "these ranks would run on the fallback\n";
  return out + fmt::format("\nan all-reduce of 25 MiB is estimated to take {:.2f} ms; window {} x {}\n",
                           p.at("estimated_seconds").get<double>() * 1e3, number(p, "window"),
                           bytes_text(number(p, "segment_bytes")));
}

Result<std::vector<std::string>> hosts_of(const PlanOptions& plan) {
  std::vector<std::string> hosts;
  for (const std::string& range : plan.hosts) {
    const auto names = manager::expand_names(range);
    if (!names) return std::unexpected(names.error());
    hosts.insert(hosts.end(), names->begin(), names->end());
  }
  return hosts;
}

/// Says whether a job with these hosts asks the manager for the trees of one rank for each: the others reduce with it in
/// shared memory.
bool asks_for_leaders(const std::vector<std::string>& hosts, const PlanOptions& plan) {
  return plan.ranks_per_host > 1 && may_share_memory() && std::set(hosts.begin(), hosts.end()).size() > 1;
}

}  // namespace

int status(const ManagerOptions& options) {
  return show(options, [&](ManagerClient& client) { return summary(client, manager_url(options)); }, status_text);
}

int aggregators(const ManagerOptions& options, const std::string& name) {
  if (name.empty()) return show(options, get("/v1/aggregators"), aggregators_text);
  if (const auto ok = manager::check_name(name); !ok) return usage("aggregators: " + ok.error().message);
  return show(options, get("/v1/aggregators/" + name), aggregators_text);
}

int groups(const ManagerOptions& options, const std::string& group) {
  if (group.empty()) return show(options, get("/v1/groups"), groups_text);
  if (!is_number(group)) return usage("groups: '" + group + "' is not the number of a group");
  return show(options, get("/v1/groups/" + group), group_text);
}

int trees(const ManagerOptions& options, const std::string& group) {
  if (!group.empty() && !is_number(group)) return usage("trees: '" + group + "' is not the number of a group");
  const auto text = [](const json& document) {
    const std::string drawing = draw_trees(document.at("trees"));
    return drawing.empty() ? std::string("no trees\n") : drawing;
  };
  return show(options, get("/v1/trees" + (group.empty() ? "" : "?group=" + group)), text);
}

int drain(const ManagerOptions& options, const std::string& name, bool undo) {
  if (const auto ok = manager::check_name(name); !ok) return usage("drain: " + ok.error().message);
  const auto ask = [&](ManagerClient& client) {
    return client.request("POST", "/v1/aggregators/" + name + (undo ? "/undrain" : "/drain"), nullptr);
  };
  return show(options, ask, [&](const json&) {
    return undo ? name + " takes part in new trees again\n"
                : name + " gets no new trees; groups that use it are asked to move away\n";
  });
}

int plan(const ManagerOptions& options, const PlanOptions& plan) {
  const auto hosts = hosts_of(plan);
  if (!hosts) return usage("plan: " + hosts.error().message);
  const bool leaders = asks_for_leaders(*hosts, plan);
  std::vector<std::string> ranks;
  for (const std::string& host : *hosts) ranks.insert(ranks.end(), leaders ? 1 : plan.ranks_per_host, host);
  json body = {{"ranks", ranks}, {"lanes", plan.lanes}, {"lane_weights", true}};
  if (plan.levels != 0) body["levels"] = plan.levels;
  if (plan.window != 0) body["window"] = plan.window;
  if (plan.segment_bytes != 0) body["segment_bytes"] = plan.segment_bytes;
  const auto text = [&](const json& document) {
    if (!leaders) return plan_text(document);
    return fmt::format(
               "The {} ranks of each host reduce in shared memory, and one of them takes part in the trees.\n\n",
               plan.ranks_per_host) +
           plan_text(document);
  };
  return show(options, [&](ManagerClient& client) { return client.request("POST", "/v1/plan", body); }, text);
}

}  // namespace tributary::cli

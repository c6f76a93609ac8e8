#include "client/cli/manager/listings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "client/cli/manager/group_view.h"
#include "client/cli/manager/tree_drawing.h"
#include "client/cli/terminal/counted.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/tuning/explain_local.h"
#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/reason.h"

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
/// Names the group that saw an aggregator fail. The manager does not tell a tenant the numbers of others' groups.
std::string suspected_by(const json& aggregator) {
  if (!aggregator.contains("suspected")) return "-";
  const json& report = aggregator.at("suspected");
  return report.contains("group") ? "group " + count_text(report, "group") : "a group";
}
std::string lease_text(const json& from) {
  return fmt::format("{:.0f} s", std::max(0.0, from.at("lease_seconds_left").get<double>()));
}

std::string since_text(const json& from, const char* member) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  const std::int64_t then = from.value(member, std::int64_t{0});
  return then == 0 ? "-" : age_text(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.count() - then)));
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

/// Returns a text such as "1.5 GiB (87.0 %)".
std::string share_text(std::uint64_t part, std::uint64_t all) {
  if (all == 0) return bytes_text(part);
  return fmt::format("{} ({:.1f} %)", bytes_text(part), 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

/// Gets several documents of the manager, and makes one document of them.
Result<json> summary(ManagerClient& client, const std::string& url) {
  json parts;
  for (const char* part : {"version", "aggregators", "groups", "topology"}) {
    auto answer = client.get(std::string("/v1/") + part);
    if (!answer) return std::unexpected(answer.error());
    parts[part] = std::move(*answer);
  }
  json aggregators = {{"active", 0}, {"draining", 0}, {"suspected", 0}, {"expired", 0}};
  std::uint64_t memory = 0, reserved = 0, in_network = 0, ranks = 0, lanes = 0;
  Traffic traffic;
  for (const json& one : parts["aggregators"].at("aggregators")) {
    aggregators[text(one, "state")] = aggregators.value(text(one, "state"), 0) + 1;
    if (text(one, "state") == "expired") continue;
    memory += number(one, "memory_bytes");
    reserved += number(one, "memory_reserved_bytes");
  }
  const json& groups = parts["groups"].at("groups");
  for (const json& one : groups) {
    in_network += text(one, "path") == "in-network" ? 1U : 0U;
    ranks += processes_of(one);
    traffic.add(one);
    lanes += number(one, "lanes");
  }
  aggregators["memory_bytes"] = memory;
  aggregators["memory_reserved_bytes"] = reserved;
  const json& topology = parts["topology"];
  return json{{"manager", url},
              {"version", text(parts["version"], "version")},
              {"protocol_version", number(parts["version"], "protocol_version")},
              {"aggregators", std::move(aggregators)},
              {"groups",
               {{"in_network", in_network},
                {"fallback", groups.size() - in_network},
                {"ranks", ranks},
                {"lanes", lanes},
                {"bytes_in_network", traffic.in_network},
                {"bytes_between_ranks", traffic.between_ranks},
                {"bytes_in_shared_memory", traffic.in_shared_memory}}},
              {"topology",
               {{"fabric", text(topology, "fabric")},
                {"source", text(topology, "source")},
                {"hosts", topology.at("hosts").size()},
                {"switches", topology.at("switches").size()}}}};
}

std::string status_text(const json& s, const TableStyle&) {
  const json& a = s.at("aggregators");
  const json& g = s.at("groups");
  const json& t = s.at("topology");
  return fmt::format("manager      {}, version {}, protocol {}\n", text(s, "manager"), text(s, "version"),
                     number(s, "protocol_version")) +
         fmt::format("aggregators  {} active, {} draining, {} suspected, {} expired; {} of {} reserved\n",
                     number(a, "active"), number(a, "draining"), number(a, "suspected"), number(a, "expired"),
                     bytes_text(number(a, "memory_reserved_bytes")), bytes_text(number(a, "memory_bytes"))) +
         fmt::format("groups       {} in-network, {} on fallback; {}, {}\n", number(g, "in_network"),
                     number(g, "fallback"), counted(number(g, "ranks"), "rank", "ranks"),
                     counted(number(g, "lanes"), "lane", "lanes")) +
         fmt::format("bytes        {} in-network, {} between ranks, {} in shared memory\n",
                     share_text(number(g, "bytes_in_network"), number(g, "bytes_in_network") +
                                                                   number(g, "bytes_between_ranks") +
                                                                   number(g, "bytes_in_shared_memory")),
                     bytes_text(number(g, "bytes_between_ranks")), bytes_text(number(g, "bytes_in_shared_memory"))) +
         fmt::format("topology     {} ({}): {}, {}\n", text(t, "fabric"), text(t, "source"),
                     counted(number(t, "hosts"), "host", "hosts"),
                     counted(number(t, "switches"), "switch", "switches"));
}

/// Returns all addresses of an aggregator; an older manager knows only one of them.
std::string addresses_text(const json& aggregator) {
  std::string list;
  for (const json& one : aggregator.value("addresses", json::array())) {
    list += (list.empty() ? "" : ",") + text(one, "at") + (one.at("live").get<bool>() ? "" : "(down)");
  }
  return list.empty() ? text(aggregator, "data") : list;
}

std::string aggregators_text(const json& document, const TableStyle& style) {
  std::vector<std::string> names{"NAME",  "STATE",    "HOST",   "DATA", "RESERVED", "MEMORY",
                                 "LANES", "SESSIONS", "SUMMED", "AGE",  "LEASE"};
  if (style.wide) names.insert(names.end(), {"RATE", "CHILDREN", "HTTP", "SUSPECTED BY", "VERSION"});
  Table table(names);
  const json one = json::array({document});
  for (const json& a : document.contains("aggregators") ? document.at("aggregators") : one) {
    const json& load = a.at("load");
    std::vector<std::string> row{text(a, "name"),
                                 text(a, "state"),
                                 text(a, "host") + (a.at("placed").get<bool>() ? "" : " (unknown)"),
                                 addresses_text(a),
                                 bytes_text(number(a, "memory_reserved_bytes")),
                                 bytes_text(number(a, "memory_bytes")),
                                 count_text(load, "lanes_active"),
                                 count_text(load, "sessions"),
                                 bytes_text(number(load, "contribution_bytes_total")),
                                 since_text(a, "registered_at"),
                                 lease_text(a)};
    if (style.wide) {
      const std::uint64_t rate = number(a, "line_rate_bits_per_second");
      row.insert(row.end(), {rate == 0 ? "-" : rate_text(rate), count_text(a, "children_max"), text(a, "http"),
                             suspected_by(a), text(a, "version")});
    }
    table.add(std::move(row));
  }
  return table.text(style.colour);
}

/// Returns the number of wanted lanes; the manager's 0 is the user's "auto".
std::string lanes_wanted_text(const json& group) {
  return number(group, "lanes_wanted") == 0 ? "auto" : count_text(group, "lanes_wanted");
}

std::string groups_text(const json& document, const TableStyle& style) {
  std::vector<std::string> names{"GROUP", "JOB",   "USER",   "AGE",        "RANKS", "HOSTS",
                                 "PATH",  "LANES", "LEVELS", "IN-NETWORK", "LEASE"};
  if (style.wide)
    names.insert(names.end(), {"BETWEEN RANKS", "SHARED MEMORY", "OPERATIONS", "EPOCH", "WINDOW", "SEGMENT"});
  names.emplace_back("REASON");
  Table table(names);
  for (const json& g : document.at("groups")) {
    Traffic traffic;
    traffic.add(g);
    const bool told = g.contains("traffic");
    const auto bytes = [told](std::uint64_t count) { return told ? bytes_text(count) : std::string("-"); };
    std::vector<std::string> row{count_text(g, "group"),
                                 text(g, "job"),
                                 g.value("user", "").empty() ? "-" : text(g, "user"),
                                 g.contains("age_seconds") ? age_text(number(g, "age_seconds")) : "-",
                                 std::to_string(processes_of(g)),
                                 g.contains("host_count") ? count_text(g, "host_count") : "-",
                                 path_of(g),
                                 count_text(g, "lanes") + "/" + lanes_wanted_text(g),
                                 count_text(g, "levels"),
                                 told ? share_text(traffic.in_network, traffic.all()) : "-",
                                 lease_text(g)};
    if (style.wide) {
      row.insert(row.end(), {bytes(traffic.between_ranks), bytes(traffic.in_shared_memory),
                             told ? count_text(g.at("traffic"), "operations") : "-", count_text(g, "epoch"),
                             count_text(g, "window"), bytes_text(number(g, "segment_bytes"))});
    }
    row.push_back(coded(g.value("code", ""), text(g, "reason")));
    table.add(std::move(row));
  }
  std::string out = table.text(style.colour);
  for (const json& g : document.at("groups")) {
    for (const std::string& line : late_lines(g)) out += printable(line) + "\n";
  }
  return out;
}

std::string group_text(const json& g, const TableStyle& style) {
  std::string out = groups_text({{"groups", json::array({g})}}, style);
  for (const json& failed : g.at("failed"))
    out += fmt::format("avoids {}, which the group saw fail\n", printable(text(failed, "name")));
  const std::string drawing = draw_trees(g.at("trees"));
  return drawing.empty() ? out : out + "\n" + drawing;
}

/// Removes entries of other jobs and users from document[list]; an empty name in the filter removes none.
Result<json> only(Result<json> document, const char* list, const GroupFilter& filter) {
  if (!document) return document;
  std::erase_if(document->at(list).get_ref<json::array_t&>(), [&](const json& one) {
    const bool other_job = !filter.job.empty() && text(one, "job") != filter.job;
    return other_job || (!filter.user.empty() && one.value("user", "") != filter.user);
  });
  return document;
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

/// Returns whether a job on these hosts asks the manager for trees with one rank for each host: the other ranks of the
/// host then reduce with this rank in shared memory.
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

int groups(const ManagerOptions& options, const std::string& group, GroupFilter filter) {
  if (is_number(group)) return show(options, get("/v1/groups/" + group), group_text);
  if (!group.empty()) filter.job = group;
  const auto ask = [filter](ManagerClient& client) { return only(client.get("/v1/groups"), "groups", filter); };
  return show(options, ask, groups_text);
}

int trees(const ManagerOptions& options, const std::string& group, const GroupFilter& filter) {
  if (!group.empty() && !is_number(group)) return usage("trees: '" + group + "' is not the number of a group");
  const auto ask = [group, filter](ManagerClient& client) {
    return only(client.get("/v1/trees" + (group.empty() ? "" : "?group=" + group)), "trees", filter);
  };
  const auto text = [](const json& document, const TableStyle&) {
    const std::string drawing = draw_trees(document.at("trees"));
    return drawing.empty() ? std::string("no trees\n") : drawing;
  };
  return show(options, ask, text);
}

namespace {

/// Waits until the aggregator has no lanes, or is gone.
Status wait_until_drained(ManagerClient& client, const std::string& name, const DrainOptions& drain) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(drain.wait_seconds);
  while (true) {
    const auto state = client.get("/v1/aggregators/" + name);
    if (!state && state.error().code == Errc::peer_gone) return {};  // the aggregator has drained, and has left
    if (!state && state.error().code != Errc::unreachable) return std::unexpected(state.error());
    const std::uint64_t lanes = state ? number(state->at("load"), "lanes_active") : 1;
    const std::uint64_t reserved = state ? number(*state, "memory_reserved_bytes") : 1;
    if (lanes == 0 && reserved == 0) return {};
    if (std::chrono::steady_clock::now() >= deadline) {
      if (!state) return std::unexpected(state.error());
      return fail(Errc::timed_out, fmt::format("{} still has {} lanes, and {} reserved, after {:.0f} s; tributary "
                                               "trees shows whose they are",
                                               name, lanes, bytes_text(reserved), drain.wait_seconds));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace

namespace {

constexpr std::chrono::seconds kResumeLimit{5};  // a draining aggregator renews its lease more often than this

/// Ends the drain, and waits a short time until the aggregator has heard of it. Returns the aggregator as the manager
/// then lists it.
Result<json> undrain(ManagerClient& client, const std::string& name) {
  const std::string path = "/v1/aggregators/" + name;
  if (const auto done = client.request("POST", path + "/undrain", nullptr); !done) return done;
  const auto deadline = std::chrono::steady_clock::now() + kResumeLimit;
  while (true) {
    auto view = client.get(path);
    if (!view || view->value("state", "") != "resuming" || std::chrono::steady_clock::now() >= deadline) return view;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string undrained_text(const std::string& name, const std::string& state) {
  if (state == "active") return name + " takes part in new trees again\n";
  if (state == "resuming")
    return name + " no longer drains, and has not heard of it yet: no tree uses it until it renews its lease\n";
  return fmt::format("{} no longer drains, but it is {}: no tree uses it\n", name, state);
}

}  // namespace

int drain(const ManagerOptions& options, const std::string& name, const DrainOptions& drain) {
  if (const auto ok = manager::check_name(name); !ok) return usage("drain: " + ok.error().message);
  if (drain.undo) {
    const auto ask = [&](ManagerClient& client) { return undrain(client, name); };
    return show(options, ask,
                [&](const json& view, const TableStyle&) { return undrained_text(name, view.value("state", "")); });
  }
  const auto ask = [&](ManagerClient& client) -> Result<json> {
    auto answer = client.request("POST", "/v1/aggregators/" + name + "/drain", nullptr);
    if (!answer || drain.wait_seconds <= 0) return answer;
    if (auto ok = wait_until_drained(client, name, drain); !ok) return std::unexpected(ok.error());
    return answer;
  };
  return show(options, ask, [&](const json&, const TableStyle&) {
    return drain.wait_seconds > 0 ? name + " has no lanes any more: it can be stopped\n"
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
  if (!plan.rail.empty()) body["rail"] = plan.rail;
  const auto text = [&](const json& document, const TableStyle&) {
    if (!leaders) return plan_text(document);
    return fmt::format(
               "The {} ranks of each host reduce in shared memory, and one of them takes part in the trees.\n\n",
               plan.ranks_per_host) +
           plan_text(document);
  };
  return show(options, [&](ManagerClient& client) { return client.request("POST", "/v1/plan", body); }, text);
}

}  // namespace tributary::cli

#include "tree-manager/api/tenant_routes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tree-manager/api/json_input.h"
#include "tree-manager/service/tenant_json.h"
#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::uint64_t kQuotaMax = 1ULL << 53;  // every reader of JSON can read numbers up to this
constexpr std::uint64_t kAggregatorsMax = 4096;
constexpr std::int64_t kLateSecondsMax = 10;  // for clocks that differ, and requests on their way

json tenant_json(const std::string& name, const TenantRule& rule, const TenantUse& use) {
  json out = terms_json(rule);
  out.update({{"name", name}, {"quota", to_json(rule.quota)}, {"use", to_json(use)}});
  return out;
}

/// Lists the aggregators from which the manager may choose: the least used first.
std::vector<std::string> candidates(const Cluster& cluster) {
  std::vector<AggregatorView> views = cluster.aggregators();
  std::erase_if(views, [](const AggregatorView& it) { return it.record.expired || it.record.draining || !it.placed; });
  std::ranges::stable_sort(views, {}, &AggregatorView::memory_reserved_bytes);
  std::vector<std::string> names;
  for (const AggregatorView& it : views) names.push_back(it.record.name);
  return names;
}

}  // namespace

HttpReply list_tenants(const Cluster& cluster, const Identity& caller) {
  const TenantsView view = cluster.tenants();
  std::map<std::string, json> list;
  const auto add = [&](const std::string& name, const std::string& tenant) {
    if (caller.roles == Roles(Role::tenant) && tenant != caller.tenant) return;
    const auto use = view.uses.find(tenant);
    list[name] = tenant_json(name, view.rules.of(name), use == view.uses.end() ? TenantUse{} : use->second);
  };
  const auto tenant_of = [](const std::string& name) { return name == TenantRules::kForTheJobToken ? "" : name; };
  for (const auto& [name, rule] : view.rules.tenants()) add(name, tenant_of(name));
  for (const auto& [tenant, use] : view.uses) add(tenant.empty() ? TenantRules::kForTheJobToken : tenant, tenant);
  json tenants = json::array();
  for (auto& [name, entry] : list) tenants.push_back(std::move(entry));
  return json_reply({{"tenants", std::move(tenants)}});
}

HttpReply put_tenant(Cluster& cluster, const std::string& name, const std::string& body) {
  // An entry without members lifts all limits, so the caller must say so.
  if (body.empty()) return error_reply(400, "the body is empty: send {} for an entry without limits");
  JsonInput in(body);
  TenantRule rule;
  rule.quota = {.groups = in.number("groups", 0, kQuotaMax, kNoLimit),
                .lanes = in.number("lanes", 0, kQuotaMax, kNoLimit),
                .memory_bytes = in.number("memory_bytes", 0, kQuotaMax, kNoLimit),
                .bytes_per_second = in.number("bytes_per_second", 0, kQuotaMax, kNoLimit)};
  const auto priority = priority_from_string(in.text("priority_max", "normal"));
  rule.weight = static_cast<std::uint8_t>(in.number("weight", 1, kShareWeightMax, 1));
  const auto security = parse_packet_security(in.text("security", "off"));
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  if (!priority) return error_reply(400, "'priority_max' is not low, normal or high");
  if (!security) return error_reply(400, "'security': " + security.error().message);
  rule.priority_max = *priority;
  rule.security = *security;
  return done_reply(cluster.change_rules([&](TenantRules& rules) { return rules.put(name, rule); }));
}

HttpReply delete_tenant(Cluster& cluster, const std::string& name) {
  return done_reply(cluster.change_rules([&](TenantRules& rules) { return rules.remove(name); }));
}

HttpReply list_reservations(const Cluster& cluster, const std::string* only) {
  json list = json::array();
  const TenantsView view = cluster.tenants();
  for (const auto& [name, it] : view.rules.reservations()) {
    if (only == nullptr || it.tenant == *only) list.push_back(to_json(it));
  }
  return json_reply({{"reservations", std::move(list)}});
}

HttpReply make_reservation(Cluster& cluster, const std::string& body, std::int64_t now_s, std::string& object) {
  JsonInput in(body);
  Reservation wanted{.name = in.text("name"),
                     .tenant = in.text("tenant"),
                     .job = in.text("job", ""),
                     .aggregators = in.texts("aggregators", false)};
  const auto count = static_cast<std::uint32_t>(in.number("count", 0, kAggregatorsMax, 0));
  wanted.begin = static_cast<std::int64_t>(in.number("begin", 0, kUnixSecondsMax, static_cast<std::uint64_t>(now_s)));
  wanted.end = static_cast<std::int64_t>(in.number("end", 0, kUnixSecondsMax));
  wanted.exclusive = in.flag("exclusive", false);
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  if (auto ok = check_name(wanted.tenant); !ok) return error_reply(400, "'tenant': " + ok.error().message);
  if (wanted.job.size() > kNameBytesMax) return error_reply(400, "'job' is longer than 63 bytes");
  if (wanted.aggregators.size() > kAggregatorsMax) return error_reply(400, "'aggregators' has more than 4096 names");
  if (wanted.aggregators.empty() == (count == 0)) return error_reply(400, "name either 'aggregators' or their 'count'");
  if (wanted.end <= now_s) return error_reply(400, "'end' has passed");
  // If the manager stood still, the caller may have given up, and nobody would end the reservation.
  if (wanted.begin < now_s - kLateSecondsMax)
    return error_reply(400, "'begin' has passed more than 10 s ago: leave it out, for a reservation from now on");
  for (const std::string& one : wanted.aggregators) {
    if (const auto known = cluster.aggregator(one); !known) return error_reply(known.error());
  }
  if (wanted.tenant == TenantRules::kForTheJobToken) wanted.tenant.clear();
  const std::string name = wanted.name;
  const auto free = candidates(cluster);  // outside the lock of change_rules()
  json answer;
  const auto made = cluster.change_rules([&](TenantRules& rules) {
    const Status ok = count == 0 ? rules.reserve(std::move(wanted)) : rules.reserve(std::move(wanted), count, free);
    if (ok) answer = to_json(rules.reservations().at(name));
    return ok;
  });
  if (!made) return error_reply(made.error());
  object = "reservation " + name;
  return json_reply(answer);
}

HttpReply delete_reservation(Cluster& cluster, const std::string& name) {
  return done_reply(cluster.change_rules([&](TenantRules& rules) { return rules.end_reservation(name); }));
}

}  // namespace tributary::manager

#include "tree-manager/service/tenant_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tributary/protocol/credential.h"

namespace tributary::manager {

using nlohmann::json;

json to_json(const TenantUse& use) {
  json out = json::object();
  for (const TenantUseMember& it : kTenantUseMembers) {
    if (use.*it.value != kNoLimit) out[it.name] = use.*it.value;
  }
  return out;
}

TenantUse tenant_use_from(const json& from) {
  TenantUse use;
  for (const TenantUseMember& it : kTenantUseMembers) use.*it.value = from.value(it.name, kNoLimit);
  return use;
}

json terms_json(const TenantRule& rule) {
  return {{"priority_max", std::string(to_string(rule.priority_max))},
          {"weight", rule.weight},
          {"security", std::string(to_string(rule.security))}};
}

TenantRule tenant_rule_from(const json& from) {
  const auto weight = std::clamp<std::uint64_t>(from.value("weight", std::uint64_t{1}), 1, kShareWeightMax);
  return {.quota = tenant_use_from(from),
          .priority_max = priority_from_string(from.at("priority_max").get<std::string>()).value_or(Priority::normal),
          .weight = static_cast<std::uint8_t>(weight),
          .security = parse_packet_security(from.value("security", "off")).value_or(PacketSecurity::encrypt)};
}

json to_json(const Reservation& it) {
  return {{"name", it.name},
          {"tenant", it.tenant},
          {"job", it.job},
          {"aggregators", it.aggregators},
          {"begin", it.begin},
          {"end", it.end},
          {"exclusive", it.exclusive}};
}

Reservation reservation_from(const json& from) {
  return {.name = from.at("name"),
          .tenant = from.at("tenant"),
          .job = from.at("job"),
          .aggregators = from.at("aggregators"),
          .begin = from.at("begin"),
          .end = from.at("end"),
          .exclusive = from.at("exclusive")};
}

}  // namespace tributary::manager

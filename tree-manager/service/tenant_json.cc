#include "tree-manager/service/tenant_json.h"

#include <nlohmann/json.hpp>

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

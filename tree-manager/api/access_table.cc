#include "tree-manager/api/access_table.h"

#include <algorithm>

namespace tributary::manager {
namespace {

constexpr Roles kEveryRole = Roles::all();
constexpr Roles kAdministrator{Role::administrator};
constexpr Roles kOperators{Role::administrator, Role::operator_};
constexpr Roles kAggregators{Role::administrator, Role::aggregator};
constexpr Roles kTenants{Role::tenant};
constexpr Roles kPlanners{Role::administrator, Role::operator_, Role::tenant};
constexpr Roles kRulers{Role::administrator};
constexpr Roles kRuled{Role::administrator, Role::operator_, Role::tenant, Role::reader};
constexpr Roles kOwners{Role::administrator, Role::tenant};

constexpr AccessRow open_row(std::string_view pattern, bool own) {
  return {.method = "GET",
          .pattern = pattern,
          .open = true,
          .read = false,
          .scope = {},
          .roles = kEveryRole,
          .owned = Owned::nothing,
          .own = own};
}
constexpr AccessRow read_row(std::string_view pattern, Owned owned = Owned::nothing, bool own = false) {
  return {.method = "GET",
          .pattern = pattern,
          .open = false,
          .read = true,
          .scope = Scope::read,
          .roles = kEveryRole,
          .owned = owned,
          .own = own};
}
constexpr AccessRow row(std::string_view method, std::string_view pattern, std::optional<Scope> scope, Roles roles,
                        Owned owned = Owned::nothing) {
  return {.method = method,
          .pattern = pattern,
          .open = false,
          .read = false,
          .scope = scope,
          .roles = roles,
          .owned = owned};
}

constexpr std::array kTable{
    open_row("/", true),
    open_row("/web/{file}", true),
    open_row("/healthz", true),
    open_row("/v1/openapi.json", true),
    open_row("/v1/version", true),
    open_row("/v1/leader", true),
    open_row("/v1/public-key", false),
    read_row("/metrics", Owned::nothing, true),
    read_row("/v1/aggregators"),
    read_row("/v1/aggregators/{name}"),
    read_row("/v1/groups"),
    read_row("/v1/groups/{id}", Owned::seen_group),
    read_row("/v1/trees"),
    read_row("/v1/overview"),
    read_row("/v1/events"),
    read_row("/v1/topology"),
    row("POST", "/v1/aggregators", Scope::aggregators, kAggregators),
    row("DELETE", "/v1/aggregators/{name}", Scope::aggregators, kAggregators, Owned::aggregator),
    row("PUT", "/v1/aggregators/{name}/lease", Scope::aggregators, kAggregators, Owned::aggregator),
    row("POST", "/v1/aggregators/{name}/drain", Scope::drain, kOperators),
    row("POST", "/v1/aggregators/{name}/undrain", Scope::drain, kOperators),
    row("PUT", "/v1/topology", Scope::topology, kOperators),
    row("POST", "/v1/plan", Scope::plan, kPlanners),
    row("POST", "/v1/groups", Scope::groups, kTenants),
    row("DELETE", "/v1/groups/{id}", Scope::groups, kOwners, Owned::group),
    row("PUT", "/v1/groups/{id}/lease", Scope::groups, kTenants, Owned::group),
    row("GET", "/v1/groups/{id}/tokens", Scope::groups, kTenants, Owned::group),
    row("POST", "/v1/groups/{id}/rebuild", Scope::groups, kTenants, Owned::group),
    row("GET", "/v1/tenants", Scope::read, kRuled),
    row("PUT", "/v1/tenants/{name}", Scope::tenants, kRulers),
    row("DELETE", "/v1/tenants/{name}", Scope::tenants, kRulers),
    read_row("/v1/reservations"),
    row("POST", "/v1/reservations", Scope::tenants, kOperators),
    row("DELETE", "/v1/reservations/{name}", Scope::tenants, kOperators),
    row("POST", "/v1/tokens", Scope::tokens, kOperators),
    row("POST", "/v1/tokens/renew", {}, kEveryRole),
    row("POST", "/v1/tokens/revoke", Scope::tokens, kOperators),
    row("GET", "/v1/tokens/revoked", Scope::tokens, kOperators),
};

}  // namespace

std::span<const AccessRow> access_table() noexcept {
  return kTable;
}

const AccessRow* access_row(std::string_view method, std::string_view pattern) noexcept {
  const auto found =
      std::ranges::find_if(kTable, [&](const AccessRow& it) { return it.method == method && it.pattern == pattern; });
  return found == kTable.end() ? nullptr : &*found;
}

std::string why_denied(const AccessRow& row, const Identity& identity) {
  const std::string route = std::string(row.method) + " " + std::string(row.pattern);
  if (!identity.roles.meets(row.roles)) {
    return "the role " + to_string(identity.roles) + " may not " + route + "; it takes " + to_string(row.roles, " or ");
  }
  if (row.scope && !identity.scopes.has(*row.scope)) {
    return "the token lacks the scope '" + std::string(to_string(*row.scope)) + "', which " + route + " takes";
  }
  return {};
}

}  // namespace tributary::manager

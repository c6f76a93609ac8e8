#include "aggregator/worker/tenant_limits.h"

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

namespace tributary::aggregator {
namespace {

constexpr std::int64_t kBurstNs = 2'000'000'000;  // as many joins may come at once as the rate allows in this time
constexpr std::size_t kTenantsKept = 64;          // beyond this number, forget_idle() removes tenants that are idle

std::string name_of(const std::string& tenant) {
  return tenant.empty() ? "the groups without a tenant" : "tenant '" + tenant + "'";
}

/// Begins a sentence about the tenant, with the verb for one or for several.
std::string who(const std::string& tenant, const char* of_one, const char* of_several) {
  return name_of(tenant) + ' ' + (tenant.empty() ? of_several : of_one) + ' ';
}

}  // namespace

void TenantLimits::Place::ready() {
  if (std::exchange(half_open_, false)) limits_.no_longer_half_open(tenant_);
}

Status TenantLimits::refuse_at_limit(const std::string& tenant, std::int64_t now_ns) {
  const auto refuse = [&](TenantLimit limit, const std::string& what, const char* setting) -> Status {
    ++counts_.refused[static_cast<std::size_t>(limit)];
    return fail(Errc::exhausted, Reason::tenant_limit,
                what + ", the most that this aggregator allows (" + setting +
                    "); the group goes on without it, and may try again");
  };
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return {};
  const Tenant& known = found->second;
  if (settings_.connections_max != 0 && known.connections >= settings_.connections_max) {
    return refuse(TenantLimit::connections,
                  who(tenant, "has", "have") + std::to_string(known.connections) + " connections",
                  "tenant_connections_max");
  }
  if (settings_.half_open_max != 0 && known.half_open >= settings_.half_open_max) {
    return refuse(
        TenantLimit::half_open,
        who(tenant, "has", "have") + std::to_string(known.half_open) + " connections whose lanes are not ready yet",
        "tenant_half_open_max");
  }
  if (settings_.joins_per_second_max != 0 && known.joins_until_ns - now_ns > kBurstNs - join_ns()) {
    return refuse(TenantLimit::joins_per_second,
                  who(tenant, "joins", "join") + "more than " + std::to_string(settings_.joins_per_second_max) +
                      " times a second",
                  "tenant_joins_per_second_max");
  }
  return {};
}

Status TenantLimits::check(const std::string& tenant, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  return refuse_at_limit(tenant, now_ns);
}

Result<std::shared_ptr<TenantLimits::Place>> TenantLimits::enter(const std::string& tenant, std::int64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (auto ok = refuse_at_limit(tenant, now_ns); !ok) return std::unexpected(ok.error());
    forget_idle(now_ns);
    Tenant& known = tenants_[tenant];
    if (settings_.joins_per_second_max != 0) known.joins_until_ns = std::max(known.joins_until_ns, now_ns) + join_ns();
    if (known.connections++ == 0) ++counts_.tenants;
    ++known.half_open;
    ++counts_.half_open;
  }
  return std::make_shared<Place>(*this, tenant);
}

void TenantLimits::leave(const std::string& tenant, bool half_open) {
  const std::lock_guard lock(mutex_);
  const auto found = tenants_.find(tenant);
  TRIBUTARY_ASSERT(
      found != tenants_.end() && found->second.connections > 0 && found->second.half_open >= (half_open ? 1U : 0U),
      "a connection of {} ends, and none is known", name_of(tenant));
  if (half_open) {
    --found->second.half_open;
    --counts_.half_open;
  }
  if (--found->second.connections == 0) --counts_.tenants;
}

void TenantLimits::no_longer_half_open(const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  const auto found = tenants_.find(tenant);
  TRIBUTARY_ASSERT(found != tenants_.end() && found->second.half_open > 0, "a join of {} is ready, and none is known",
                   name_of(tenant));
  --found->second.half_open;
  --counts_.half_open;
}

/// Forgets tenants that have no connections, and whose joins no longer count.
void TenantLimits::forget_idle(std::int64_t now_ns) {
  if (tenants_.size() - counts_.tenants < kTenantsKept) return;
  std::erase_if(tenants_, [now_ns](const auto& entry) {
    return entry.second.connections == 0 && entry.second.joins_until_ns <= now_ns;
  });
}

TenantCounts TenantLimits::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::size_t TenantLimits::remembered() const {
  const std::lock_guard lock(mutex_);
  return tenants_.size();
}

}  // namespace tributary::aggregator

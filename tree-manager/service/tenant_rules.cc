#include "tree-manager/service/tenant_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tree-manager/service/group_memory.h"
#include "tree-manager/service/tenant_json.h"
#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLinkBytesMax = 1ULL << 44;  // bytes per second; the sum over a tree's links stays below 2^63

/// Calls `read` with each entry of the text, which is a JSON array or empty.
template <class Read>
Status each(const std::string& text, const char* what, const Read& read) {
  if (text.empty()) return {};
  try {
    for (const json& entry : json::parse(text)) read(entry);
  } catch (const std::exception& error) {
    return fail(Errc::corrupt,
                "the manager's store holds " + std::string(what) + " that cannot be read: " + error.what());
  }
  return {};
}

}  // namespace

TenantUse& TenantUse::operator+=(const TenantUse& other) noexcept {
  for (const TenantUseMember& it : kTenantUseMembers) this->*it.value += other.*it.value;
  return *this;
}

TenantUse& TenantUse::operator-=(const TenantUse& other) noexcept {
  for (const TenantUseMember& it : kTenantUseMembers) {
    TRIBUTARY_ASSERT(this->*it.value >= other.*it.value, "a tenant gives back {} of {}, and has {}", other.*it.value,
                     it.name, this->*it.value);
    this->*it.value -= other.*it.value;
  }
  return *this;
}

TenantUse use_of(const GroupRecord& group) {
  if (group.lanes.empty()) return {};
  TenantUse use{.groups = 1, .lanes = group.lanes.size()};
  each_reservation(group, [&](const auto&, std::uint64_t bytes) { use.memory_bytes += bytes; });
  const std::uint64_t rate = std::min(std::min(group.rates.trees, group.rates.links) / 8, kLinkBytesMax);
  const std::uint32_t sum = weight_of(group.lanes);
  for (const LaneTree& lane : group.lanes) {
    TRIBUTARY_ASSERT(sum >= lane.weight && sum > 0, "a lane has weight {} of {}", lane.weight, sum);
    use.bytes_per_second += rate * lane.weight / sum * (lane.leaf_of_rank.size() + lane.nodes.size() - 1);
  }
  return use;
}

bool Reservation::has(const std::string& aggregator) const {
  return std::ranges::find(aggregators, aggregator) != aggregators.end();
}

Result<TenantRules> TenantRules::from_texts(const std::string& tenants, const std::string& reservations) {
  TenantRules rules;
  if (auto ok = each(tenants, "tenants", [&](const json& it) { rules.tenants_[it.at("name")] = tenant_rule_from(it); });
      !ok)
    return std::unexpected(ok.error());
  const auto read = [&](const json& it) { rules.reservations_[it.at("name")] = reservation_from(it); };
  if (auto ok = each(reservations, "reservations", read); !ok) return std::unexpected(ok.error());
  return rules;
}

std::string TenantRules::tenants_text() const {
  json list = json::array();
  for (const auto& [name, rule] : tenants_) {
    list.push_back(to_json(rule.quota));
    list.back().update(terms_json(rule));
    list.back()["name"] = name;
  }
  return list.dump();
}

std::string TenantRules::reservations_text() const {
  json list = json::array();
  for (const auto& [name, it] : reservations_) list.push_back(to_json(it));
  return list.dump();
}

const TenantRule& TenantRules::of(const std::string& tenant) const {
  static const TenantRule kNone;
  auto found = tenants_.find(tenant.empty() ? kForTheJobToken : tenant);
  if (found == tenants_.end()) found = tenants_.find(kForTheRest);
  return found == tenants_.end() ? kNone : found->second;
}

Status TenantRules::put(const std::string& tenant, const TenantRule& rule) {
  if (auto ok = check_name(tenant); !ok) return fail(Errc::bad_argument, "the tenant: " + ok.error().message);
  if (!tenants_.contains(tenant) && tenants_.size() >= kTenantsMax)
    return fail(Errc::retry, "the manager has " + std::to_string(kTenantsMax) + " entries of tenants, its limit");
  tenants_[tenant] = rule;
  return {};
}

Status TenantRules::remove(const std::string& tenant) {
  if (tenants_.erase(tenant) != 0) return {};
  return fail(Errc::peer_gone, "no entry has the name '" + tenant + "'; GET /v1/tenants lists them");
}

const Reservation* TenantRules::in_the_way(const Reservation& wanted, const std::string& aggregator) const {
  for (const auto& [name, it] : reservations_) {
    if (it.begin < wanted.end && wanted.begin < it.end && it.has(aggregator)) return &it;
  }
  return nullptr;
}

Status TenantRules::reserve(Reservation reservation) {
  if (auto ok = check_name(reservation.name); !ok) return fail(Errc::bad_argument, "'name': " + ok.error().message);
  if (reservation.begin >= reservation.end) return fail(Errc::bad_argument, "'end' is not after 'begin'");
  if (reservation.aggregators.empty()) return fail(Errc::bad_argument, "'aggregators' has no name");
  if (reservations_.contains(reservation.name))
    return fail(Errc::mismatch,
                "a reservation has the name '" + reservation.name + "' already; delete it, or take another name");
  if (reservations_.size() >= kReservationsMax)
    return fail(Errc::retry, "the manager has " + std::to_string(kReservationsMax) + " reservations, its limit");
  for (const std::string& one : reservation.aggregators) {
    if (const Reservation* other = in_the_way(reservation, one)) {
      return fail(Errc::mismatch, "aggregator '" + one + "' belongs to reservation '" + other->name + "' at that time");
    }
  }
  const std::string name = reservation.name;
  reservations_[name] = std::move(reservation);
  return {};
}

Status TenantRules::reserve(Reservation reservation, std::uint32_t count, const std::vector<std::string>& candidates) {
  reservation.aggregators.clear();
  for (const std::string& one : candidates) {
    if (reservation.aggregators.size() < count && in_the_way(reservation, one) == nullptr)
      reservation.aggregators.push_back(one);
  }
  if (reservation.aggregators.size() == count && count > 0) return reserve(std::move(reservation));
  return fail(Errc::mismatch, "only " + std::to_string(reservation.aggregators.size()) + " of the wanted " +
                                  std::to_string(count) + " aggregators are free at that time");
}

Status TenantRules::end_reservation(const std::string& name) {
  if (reservations_.erase(name) != 0) return {};
  return fail(Errc::peer_gone, "no reservation has the name '" + name + "'; it may have ended");
}

TenantRules::Turn TenantRules::turn(std::int64_t now) {
  Turn turn;
  for (const auto& [name, it] : reservations_) turn.changed |= turned_at_ < it.begin && it.begin <= now;
  turn.forgot = std::erase_if(reservations_, [&](const auto& it) { return it.second.end <= now; }) != 0;
  turn.changed |= turn.forgot;
  turned_at_ = now;
  return turn;
}

std::size_t TenantRules::running(std::int64_t now) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(reservations_, [&](const auto& it) { return it.second.runs(now); }));
}

std::string how_to_get(PacketSecurity security) {
  return "set TRIBUTARY_SECURITY=" + std::string(to_string(security)) + " on every rank";
}

Refusal too_little_security(const std::string& tenant, PacketSecurity demanded, PacketSecurity has) {
  if (has >= demanded) return {};
  return {.code = kCodeSecurity,
          .reason = "no tree: groups of " + (tenant.empty() ? "the job token's holders" : "tenant '" + tenant + "'") +
                    " need security '" + std::string(to_string(demanded)) + "', and this group has '" +
                    std::string(to_string(has)) + "'; " + how_to_get(demanded)};
}

Refusal over_quota(const std::string& tenant, const TenantUse& quota, const TenantUse& used, const TenantUse& more) {
  struct Row {
    std::uint64_t TenantUse::* value;
    const char* code;
    const char* what;
  };
  constexpr Row kRows[]{{&TenantUse::groups, kCodeQuotaGroups, "groups with trees"},
                        {&TenantUse::lanes, kCodeQuotaLanes, "lanes"},
                        {&TenantUse::memory_bytes, kCodeQuotaMemory, "bytes of aggregators' memory"},
                        {&TenantUse::bytes_per_second, kCodeQuotaRate, "bytes per second in the network"}};
  for (const Row& row : kRows) {
    const std::uint64_t limit = quota.*row.value;
    if (limit == kNoLimit || (used.*row.value <= limit && more.*row.value <= limit - used.*row.value)) continue;
    return {.code = row.code,
            .reason = "no tree: " +
                      (tenant.empty() ? std::string("the job token's holders have") : "tenant '" + tenant + "' has") +
                      " a quota of " + std::to_string(limit) + " " + row.what + ", uses " +
                      std::to_string(used.*row.value) + ", and this group's trees take " +
                      std::to_string(more.*row.value)};
  }
  return {};
}

}  // namespace tributary::manager

#pragma once
// The rules that an administrator makes for tenants: quotas, the highest class of their groups, and reservations of
// aggregators. The manager keeps them in its store as texts, so that every manager that leads has them.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/store/priority.h"
#include "tree-manager/store/store.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {

/// The resources that trees take, or the most that a tenant's trees may take.
struct TenantUse {
  std::uint64_t groups = 0;  // groups with trees
  std::uint64_t lanes = 0;
  std::uint64_t memory_bytes = 0;      // memory on aggregators
  std::uint64_t bytes_per_second = 0;  // planned rate, summed over all links between the trees' members, one direction
  friend bool operator==(const TenantUse&, const TenantUse&) = default;
  TenantUse& operator+=(const TenantUse& other) noexcept;
  TenantUse& operator-=(const TenantUse& other) noexcept;
};
/// The members with their names in JSON.
struct TenantUseMember {
  const char* name;
  std::uint64_t TenantUse::* value;
};
inline constexpr TenantUseMember kTenantUseMembers[]{{"groups", &TenantUse::groups},
                                                     {"lanes", &TenantUse::lanes},
                                                     {"memory_bytes", &TenantUse::memory_bytes},
                                                     {"bytes_per_second", &TenantUse::bytes_per_second}};
inline constexpr std::uint64_t kNoLimit = UINT64_MAX;
inline constexpr TenantUse kNoQuota{kNoLimit, kNoLimit, kNoLimit, kNoLimit};

/// Returns what the trees of this group take; zeros if it has none.
[[nodiscard]] TenantUse use_of(const GroupRecord& group);

struct TenantRule {
  TenantUse quota = kNoQuota;
  Priority priority_max = Priority::normal;       // a group that asks for a higher class gets this one
  std::uint8_t weight = 1;                        // its share of each aggregator's work, 1 to kShareWeightMax
  PacketSecurity security = PacketSecurity::off;  // the least security of its groups with trees
  friend bool operator==(const TenantRule&, const TenantRule&) = default;
};

/// Only the holder's groups may use these aggregators from `begin` to `end`.
struct Reservation {
  std::string name;
  std::string tenant;                    // empty: the holders of the job token
  std::string job;                       // only groups of this job; empty: all groups of the tenant
  std::vector<std::string> aggregators;  // at least one name
  std::int64_t begin = 0;                // seconds since 1970-01-01 UTC
  std::int64_t end = 0;
  bool exclusive = false;  // at the beginning, other groups leave the aggregators; otherwise they stay until they end
  [[nodiscard]] bool runs(std::int64_t now) const noexcept { return begin <= now && now < end; }
  [[nodiscard]] bool holds(const GroupRecord& group) const {
    return group.owner == tenant && (job.empty() || group.job == job);
  }
  [[nodiscard]] bool has(const std::string& aggregator) const;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

/// A value; one thread at a time may call it.
class TenantRules {
 public:
  static constexpr const char* kTenantsKey = "tenants";  // the names of the texts in the store
  static constexpr const char* kReservationsKey = "reservations";
  static constexpr const char* kForTheRest = "default";        // the entry of all tenants without an entry
  static constexpr const char* kForTheJobToken = "job.token";  // the entry of the holders of the job token
  static constexpr std::size_t kTenantsMax = 4096;
  static constexpr std::size_t kReservationsMax = 4096;

  /// Reads texts of the store; an empty text stands for no entries. Errc::corrupt: the manager did not write a text.
  [[nodiscard]] static Result<TenantRules> from_texts(const std::string& tenants, const std::string& reservations);
  [[nodiscard]] std::string tenants_text() const;
  [[nodiscard]] std::string reservations_text() const;

  /// Returns the rule of the tenant with this name; empty: of the holders of the job token.
  [[nodiscard]] const TenantRule& of(const std::string& tenant) const;
  [[nodiscard]] const std::map<std::string, TenantRule>& tenants() const noexcept { return tenants_; }
  [[nodiscard]] Status put(const std::string& tenant, const TenantRule& rule);
  /// Errc::peer_gone: there is no such entry.
  [[nodiscard]] Status remove(const std::string& tenant);

  [[nodiscard]] const std::map<std::string, Reservation>& reservations() const noexcept { return reservations_; }
  /// Errc::mismatch: the name is in use, or another reservation has one of the aggregators at that time.
  [[nodiscard]] Status reserve(Reservation reservation);
  /// Chooses `count` of the candidates, in their order, that no other reservation has at that time, and reserves them.
  /// Errc::mismatch: there are fewer.
  [[nodiscard]] Status reserve(Reservation reservation, std::uint32_t count,
                               const std::vector<std::string>& candidates);
  /// Errc::peer_gone: there is no such reservation.
  [[nodiscard]] Status end_reservation(const std::string& name);
  struct Turn {
    bool changed = false;  // a reservation has begun or ended since the last call
    bool forgot = false;   // one has ended, and is no longer listed
  };
  /// Call it a few times a second.
  Turn turn(std::int64_t now);
  /// Counts the reservations that run.
  [[nodiscard]] std::size_t running(std::int64_t now) const;

 private:
  [[nodiscard]] const Reservation* in_the_way(const Reservation& wanted, const std::string& aggregator) const;

  std::map<std::string, TenantRule> tenants_;
  std::map<std::string, Reservation> reservations_;
  std::int64_t turned_at_ = 0;
};

/// The codes of the reasons why a group has no trees, for programs.
inline constexpr const char* kCodeNoTree = code_of(Reason::no_tree).data();
inline constexpr const char* kCodeQuotaGroups = code_of(Reason::quota_groups).data();
inline constexpr const char* kCodeQuotaLanes = code_of(Reason::quota_lanes).data();
inline constexpr const char* kCodeQuotaMemory = code_of(Reason::quota_memory).data();
inline constexpr const char* kCodeQuotaRate = code_of(Reason::quota_rate).data();
inline constexpr const char* kCodeReserved =
    code_of(Reason::reserved).data();  // other holders have reserved aggregators
inline constexpr const char* kCodeWaiting =
    code_of(Reason::waiting).data();  // groups of a lower class are about to leave
inline constexpr const char* kCodePreempted =
    code_of(Reason::preempted).data();  // a group of a higher class has the place
inline constexpr const char* kCodeSecurity =
    code_of(Reason::security).data();  // the group has less security than is demanded

struct Refusal {
  std::string code;    // empty: nothing is refused
  std::string reason;  // a sentence
};
/// Refuses a group of `tenant` that has less than the demanded security.
[[nodiscard]] Refusal too_little_security(const std::string& tenant, PacketSecurity demanded, PacketSecurity has);
/// Tells a person who runs the ranks how to get this security.
[[nodiscard]] std::string how_to_get(PacketSecurity security);
/// Says whether `more` fits beside `used` into the tenant's quota.
[[nodiscard]] Refusal over_quota(const std::string& tenant, const TenantUse& quota, const TenantUse& used,
                                 const TenantUse& more);

}  // namespace tributary::manager

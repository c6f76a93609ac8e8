#pragma once
// Limits for each tenant on the data port: connections, half-open joins, and joins per second. A join is half-open from
// the check of its token until its lane is ready, or its connection has ended.
//
// Only joins whose signature is right count: nobody can use up the limits of a tenant without tokens of this tenant. So
// the number of tenants that are remembered is at most the number of the manager's tenants. Groups without a tenant
// count together, as one tenant with an empty name. Any thread may call all functions; they take a lock, and run once
// for each join and each end of a connection.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::aggregator {

struct TenantLimitSettings {
  std::uint32_t connections_max = 0;  // 0: no limit, as in the other members
  std::uint32_t half_open_max = 0;
  std::uint32_t joins_per_second_max = 0;  // most joins a second; after a pause, twice as many in one second
};

enum class TenantLimit : std::uint8_t { connections, half_open, joins_per_second };
inline constexpr std::size_t kTenantLimits = 3;

/// Counts, which any thread may read.
struct TenantCounts {
  std::array<std::uint64_t, kTenantLimits> refused{};  // joins refused, by TenantLimit
  std::uint64_t tenants = 0;                           // tenants with connections now
  std::uint64_t half_open = 0;                         // half-open joins of all tenants now
};

class TenantLimits {
 public:
  explicit TenantLimits(const TenantLimitSettings& settings) : settings_(settings) {}
  TenantLimits(const TenantLimits&) = delete;
  TenantLimits& operator=(const TenantLimits&) = delete;

  /// The place of one connection among its tenant's connections. The destructor frees the place.
  class Place {
   public:
    Place(TenantLimits& limits, std::string tenant) : limits_(limits), tenant_(std::move(tenant)) {}
    ~Place() { limits_.leave(tenant_, half_open_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Says that the lane of the join is ready. One thread at a time may call it.
    void ready();

   private:
    TenantLimits& limits_;
    const std::string tenant_;
    bool half_open_ = true;
  };

  /// Returns Errc::exhausted, with the limit and the setting, if enter() would refuse a join of this tenant. The call
  /// counts a refusal, but never a join: no signature has proved yet that the join is really of this tenant.
  [[nodiscard]] Status check(const std::string& tenant, std::int64_t now_ns);
  /// Counts a join whose signature is right. Errc::exhausted: the tenant is at one of its limits. The limits must
  /// outlive the place.
  [[nodiscard]] Result<std::shared_ptr<Place>> enter(const std::string& tenant, std::int64_t now_ns);
  [[nodiscard]] TenantCounts counts() const;
  /// Returns the number of tenants for which memory is in use.
  [[nodiscard]] std::size_t remembered() const;

 private:
  struct Tenant {
    std::uint32_t connections = 0;
    std::uint32_t half_open = 0;
    std::int64_t joins_until_ns = 0;  // time until which the joins so far use up the rate joins_per_second_max
  };
  [[nodiscard]] Status refuse_at_limit(const std::string& tenant, std::int64_t now_ns);
  [[nodiscard]] std::int64_t join_ns() const noexcept { return 1'000'000'000 / settings_.joins_per_second_max; }
  void leave(const std::string& tenant, bool half_open);
  void no_longer_half_open(const std::string& tenant);
  void forget_idle(std::int64_t now_ns);

  const TenantLimitSettings settings_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, Tenant> tenants_;
  TenantCounts counts_;
};

}  // namespace tributary::aggregator

#pragma once
// The requests of the commands for tenants and reservations, and the form of the answers. Each function returns
// the exit code of the process.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

[[nodiscard]] int list_tenants(const ManagerOptions& options);
/// Replaces the tenant's entry by `entry`, the body of PUT /v1/tenants/{name}.
[[nodiscard]] int set_tenant(const ManagerOptions& options, const std::string& name, const nlohmann::json& entry);
[[nodiscard]] int remove_tenant(const ManagerOptions& options, const std::string& name);

struct ReservationWanted {
  std::string name;
  std::string tenant;
  std::string job;                       // empty: all groups of the tenant
  std::vector<std::string> aggregators;  // empty: the manager chooses `count` of them
  std::uint32_t count = 0;
  std::int64_t begin = 0;   // seconds since 1970-01-01 UTC; 0: now
  std::int64_t end = 0;     // the same; 0: by `life_s`
  std::int64_t life_s = 0;  // time from the beginning to the end
  bool exclusive = false;
};
[[nodiscard]] int reserve(const ManagerOptions& options, const ReservationWanted& wanted);
[[nodiscard]] int list_reservations(const ManagerOptions& options);
[[nodiscard]] int end_reservation(const ManagerOptions& options, const std::string& name);

}  // namespace tributary::cli

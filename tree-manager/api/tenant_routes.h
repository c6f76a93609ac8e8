#pragma once
// The routes of tenants' rules and of reservations.
#include <string>

#include "tree-manager/api/replies.h"
#include "tree-manager/identity/identity.h"
#include "tree-manager/service/cluster.h"

namespace tributary::manager {

/// Lists rules and uses. A tenant sees only its own.
[[nodiscard]] HttpReply list_tenants(const Cluster& cluster, const Identity& caller);
[[nodiscard]] HttpReply put_tenant(Cluster& cluster, const std::string& name, const std::string& body);
[[nodiscard]] HttpReply delete_tenant(Cluster& cluster, const std::string& name);
/// `only`: the tenant whose reservations are listed; nullptr: all are.
[[nodiscard]] HttpReply list_reservations(const Cluster& cluster, const std::string* only);
/// `object` becomes the reservation's name for the audit log.
[[nodiscard]] HttpReply make_reservation(Cluster& cluster, const std::string& body, std::int64_t now_s,
                                         std::string& object);
[[nodiscard]] HttpReply delete_reservation(Cluster& cluster, const std::string& name);

}  // namespace tributary::manager

#pragma once
// The manager's state in etcd, for as long as this manager leads. Every write is one transaction that etcd makes only
// if the leader's key is still the one of this leadership. It also counts the key's version up, so a request that a
// time-out has left somewhere on the way can do nothing later.
#include <memory>

#include "tree-manager/store/election.h"
#include "tree-manager/store/etcd/etcd_client.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

struct EtcdStoreSettings {
  /// How long a write may be repeated that etcd has not answered. Then nobody knows whether it was made, and the
  /// leadership is over.
  std::chrono::milliseconds write_limit{3000};
  std::chrono::milliseconds read_limit{10'000};
  std::uint64_t fence_base_min = 0;  // of the first leadership; milliseconds since 1970-01-01 UTC
};

class EtcdStore : public Store {
 public:
  /// Returns true once etcd has refused a write because another leadership has begun, or did not say what became of
  /// one: all later writes are refused. Any thread.
  [[nodiscard]] virtual bool lost() const noexcept = 0;
  /// Reads one short value; empty: there is none.
  [[nodiscard]] virtual Result<std::string> value(const std::string& key) = 0;
};

/// Begins a leadership: sees to it that it has a fence.
[[nodiscard]] Result<std::unique_ptr<EtcdStore>> open_etcd(const EtcdSettings& etcd, const EtcdStoreSettings& settings,
                                                           const Term& term);

}  // namespace tributary::manager

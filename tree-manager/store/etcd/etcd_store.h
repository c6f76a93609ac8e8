#pragma once
// The manager's state in etcd, as long as this manager leads. Every write is one transaction that etcd makes only if
// the leader's key still belongs to this leadership. The transaction also raises the key's version, so a request that
// timed out, and arrives late, has no effect.
#include <memory>

#include "tree-manager/store/election.h"
#include "tree-manager/store/etcd/etcd_client.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

struct EtcdStoreSettings {
  /// The time for which a write without an answer of etcd is repeated. After this time its outcome is not known, and
  /// the leadership is over.
  std::chrono::milliseconds write_limit{3000};
  std::chrono::milliseconds read_limit{10'000};
  std::uint64_t fence_base_min = 0;  // least base of the first leadership; milliseconds since 1970-01-01 UTC
  /// For a store without a leadership: load() reads the records that one member of etcd has. This also works without a
  /// quorum, and the records may be old.
  bool reads_one_member = false;
};

class EtcdStore : public Store {
 public:
  /// Returns true after etcd has refused a write because another leadership has begun, or has not answered a write: all
  /// later writes are then refused. Any thread may call it.
  [[nodiscard]] virtual bool lost() const noexcept = 0;
  /// Reads one short value; empty if there is none.
  [[nodiscard]] virtual Result<std::string> value(const std::string& key) = 0;
};

/// Reads without a leadership, and refuses every write. After load(), the fence is at least as high as the fence of
/// every leadership before the read.
[[nodiscard]] Result<std::unique_ptr<EtcdStore>> open_etcd_to_read(const EtcdSettings& etcd,
                                                                   const EtcdStoreSettings& settings);
/// Begins a leadership: makes sure that it has a fence.
[[nodiscard]] Result<std::unique_ptr<EtcdStore>> open_etcd(const EtcdSettings& etcd, const EtcdStoreSettings& settings,
                                                           const Term& term);

}  // namespace tributary::manager

#pragma once
// The record that the manager gives a group to keep. It holds all facts that the manager needs about the group, under a
// seal that only the manager can make. A manager that has lost the group, because it lost its store or the lease ended,
// restores the group from the record. The group does not read the record. The record leaves out the ranks' hosts, which
// the group knows; the seal covers a digest of them. So the record's size depends on the number of aggregators in the
// trees, not on the ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {

struct OpenedRecord {
  GroupRecord group;  // `hosts` comes from the caller
  std::int64_t issued_at = 0;
  std::uint64_t fence = 0;  // number of the leadership that sealed it; 0: none
};

/// Any thread may call it.
class RecordSeal {
 public:
  /// Derives its key from the signing key, so that a manager with the same signing key can open records of an earlier
  /// manager.
  explicit RecordSeal(const SigningKey& key);
  /// Returns the record, in base64.
  [[nodiscard]] std::string seal(const GroupRecord& group, std::int64_t now_s, std::uint64_t fence) const;
  /// Opens a record. Errc::bad_argument: this manager did not make it; Errc::mismatch: `hosts` are not the group's
  /// hosts.
  [[nodiscard]] Result<OpenedRecord> open(const std::string& sealed, const std::vector<std::string>& hosts) const;

 private:
  [[nodiscard]] Digest digest_of(const std::vector<std::string>& hosts) const;
  Digest key_;
};

}  // namespace tributary::manager

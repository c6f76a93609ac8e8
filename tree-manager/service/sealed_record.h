#pragma once
// The record that the manager gives a group to keep. It holds all that the manager must know of the group, under a seal
// that nobody else can make. A manager that has lost the group, because it lost its store or the lease ended, takes the
// group back from the record. The group does not read it. The record leaves out the ranks' hosts, which the group
// knows; the seal covers a digest of them. So the record grows with the aggregators of the trees, not with the ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {

struct OpenedRecord {
  GroupRecord group;  // its hosts are those that the caller gave
  std::int64_t issued_at = 0;
  std::uint64_t fence = 0;  // number of the leadership that sealed it; 0: it had none
};

/// Any thread.
class RecordSeal {
 public:
  /// Derives its key from the signing key: a manager with the same signing key opens records of an earlier manager.
  explicit RecordSeal(const SigningKey& key);
  /// Returns the record, in base64.
  [[nodiscard]] std::string seal(const GroupRecord& group, std::int64_t now_s, std::uint64_t fence) const;
  /// Errc::bad_argument: this manager did not make the record; Errc::mismatch: the hosts are not those of the group.
  [[nodiscard]] Result<OpenedRecord> open(const std::string& sealed, const std::vector<std::string>& hosts) const;

 private:
  [[nodiscard]] Digest digest_of(const std::vector<std::string>& hosts) const;
  Digest key_;
};

}  // namespace tributary::manager

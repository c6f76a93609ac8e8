#pragma once
// The record that the manager gives a group to keep: all that it must know of the group, under a seal that nobody else
// can make. A manager that has lost the group, with its store or because the lease ended, takes it back from there. The
// group does not read it. The ranks' hosts are left out, as the group knows them; the seal covers a digest of them. So
// the record grows with the aggregators of the trees, not with the ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {

struct OpenedRecord {
  GroupRecord group;  // its hosts are those that were presented
  std::int64_t issued_at = 0;
};

/// Any thread.
class RecordSeal {
 public:
  /// Derives its key from the signing key: a manager with the same key opens what an earlier one has sealed.
  explicit RecordSeal(const SigningKey& key);
  /// Returns the record, in base64.
  [[nodiscard]] std::string seal(const GroupRecord& group, std::int64_t now_s) const;
  /// Errc::bad_argument: it is no record of this manager's; Errc::mismatch: the hosts are not those of the group.
  [[nodiscard]] Result<OpenedRecord> open(const std::string& sealed, const std::vector<std::string>& hosts) const;

 private:
  [[nodiscard]] Digest digest_of(const std::vector<std::string>& hosts) const;
  Digest key_;
};

}  // namespace tributary::manager

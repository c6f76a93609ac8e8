#pragma once
// The secrets that a rank's connections to its leaves are sealed with, or proved by. They are good until the next trees
// come, and needed for opening alone.
#include <vector>

#include "client/control/unique_id.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

class LinkSecrets {
 public:
  /// `keys`: the transport's, where it seals packets; else nullptr. `secret`: the group's.
  LinkSecrets(transport::LinkKeys* keys, const Secret& secret) : keys_(keys), secret_(secret) {}
  /// Forgets the last trees' secrets, and takes those of `descriptor`. Errc::denied if the trees are less secure than
  /// this rank's settings demand.
  [[nodiscard]] Status take(const GroupDescriptor& descriptor);

 private:
  transport::LinkKeys* const keys_;
  const Secret secret_;
  std::vector<LinkName> taken_;
};

}  // namespace tributary::client

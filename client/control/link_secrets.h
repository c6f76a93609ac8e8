#pragma once
// The secrets that seal a rank's connections to its leaves, or prove both ends to each other. Each secret holds until
// the next trees come. A connection needs its secret only while it opens.
#include <vector>

#include "client/control/unique_id.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

class LinkSecrets {
 public:
  /// `keys`: the keys of a transport that seals packets, or nullptr. `secret`: the group's secret.
  LinkSecrets(transport::LinkKeys* keys, const Secret& secret) : keys_(keys), secret_(secret) {}
  /// Forgets the secrets of the last trees, and takes the secrets of `descriptor`. Errc::denied: the trees are less
  /// secure than this rank's settings demand.
  [[nodiscard]] Status take(const GroupDescriptor& descriptor);

 private:
  transport::LinkKeys* const keys_;
  const Secret secret_;
  std::vector<LinkName> taken_;
};

}  // namespace tributary::client

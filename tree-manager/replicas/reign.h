#pragma once
// One leadership of this manager: its cluster, and the store that writes under the leadership's number.
#include <functional>
#include <memory>

#include "tree-manager/service/cluster.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

struct Reign {
  std::unique_ptr<Store> store;  // declared before the cluster, which writes to it until its end
  std::unique_ptr<Cluster> cluster;
  std::function<bool()> lost;  // true: the store refuses every write from now on
};

}  // namespace tributary::manager

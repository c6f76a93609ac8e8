#pragma once
// One leadership of this manager: the store that writes under it, and the cluster that it steers.
#include <functional>
#include <memory>

#include "tree-manager/service/cluster.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

struct Reign {
  std::unique_ptr<Store> store;  // before the cluster, which writes to it until its end
  std::unique_ptr<Cluster> cluster;
  std::function<bool()> lost;  // true: the store refuses every write from now on
};

}  // namespace tributary::manager

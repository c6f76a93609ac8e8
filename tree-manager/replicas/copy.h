#pragma once
// A copy of the store's records. A manager that does not lead answers reads from it if it can reach no leader.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "tree-manager/replicas/live_key.h"
#include "tree-manager/service/cluster.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

/// Any thread may call it.
class Copy {
 public:
  struct Source {
    std::function<Result<Snapshot>()> load;
    std::function<Result<std::optional<Topology>>()> topology;  // topology of the configured file
  };
  /// Key and clock must outlive it. `fresh`: the time for which a copy is as good as the store.
  Copy(ClusterSettings settings, const LiveKey& key, const Clock& clock, Source source,
       std::chrono::milliseconds fresh);
  /// Returns a cluster that nobody may change: its store refuses every write. If the store cannot be read now, returns
  /// the copy that was made last; nullptr: there was none.
  [[nodiscard]] std::shared_ptr<Cluster> cluster();

 private:
  struct Made;
  [[nodiscard]] Result<std::shared_ptr<Made>> make() const;

  const ClusterSettings settings_;
  const LiveKey& key_;
  const Clock& clock_;
  const Source source_;
  const std::chrono::milliseconds fresh_;
  std::mutex mutex_;  // guards the members below; held during a read of the store, which several callers share
  std::shared_ptr<Made> made_;
  std::optional<Clock::TimePoint> tried_at_;
};

}  // namespace tributary::manager

#pragma once
// The content of /metrics: the cluster's state at the time of the request, and counts of requests.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "service-kit/http/http_door.h"
#include "service-kit/metric_page.h"
#include "tree-manager/api/event_routes.h"
#include "tree-manager/api/standing.h"
#include "tree-manager/service/cluster.h"
#include "tributary/protocol/reason_counts.h"

namespace tributary::manager {

class ApiMetrics {
 public:
  /// `route` is the pattern, never the path, so that the number of label values stays bounded.
  void count(const std::string& route, unsigned status, std::chrono::nanoseconds took);
  /// Counts the reason of a request that was refused.
  void count(Reason reason);
  /// Adds the door's counts. The door must outlive this object.
  void show_door(const service::HttpDoor& door);
  /// Adds the counts of the streams of events. They must outlive this object.
  void show_streams(const EventStreams& streams);
  /// nullptr: this manager has no cluster, because it does not lead.
  [[nodiscard]] service::MetricPage page(const Cluster* cluster, const Standing& standing) const;

 private:
  struct Requests {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  const service::HttpDoor* door_ = nullptr;
  const EventStreams* streams_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, unsigned>, Requests> requests_;  // key: route and status
  ReasonNumbers reasons_;
};

}  // namespace tributary::manager

#pragma once
// The aggregator's reports about itself over HTTP: pure functions that make pages of the state at one time.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/daemon/front_door.h"
#include "aggregator/daemon/link_shares.h"
#include "aggregator/daemon/manager_link.h"
#include "aggregator/daemon/worker_thread.h"
#include "service-kit/http/http_door.h"
#include "service-kit/metric_page.h"

namespace tributary::aggregator {

/// The transports whose metrics the page has: those that this process does not use would be 0 for ever.
struct ShownTransports {
  bool udp = true, verbs = true, dpdk = true;
};

/// The state of the whole process at one time.
struct DaemonStatus {
  std::string name;
  std::string version;
  std::string host_id;
  std::vector<WorkerSnapshot> workers;  // snapshots of the workers that answered
  std::uint32_t workers_total = 0;
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t memory_bytes_reserved = 0;
  ShownTransports shown{};
  FrontDoorCounts front_door;
  TenantCounts tenants;
  LinkShareCounts links{};
  service::HttpDoorCounts http;
  std::uint64_t http_connections = 0;  // connections that are open now
  std::optional<transport::DpdkDeviceStatistics> dpdk_device;
  std::optional<transport::DpdkStatistics> dpdk_door;  // set if there are several workers
  ManagerLinkState manager;
  std::vector<ListenPlace> listen{};
  bool has_key = false;
  std::string draining;            // reason of the drain; empty: it does not drain
  std::vector<std::string> stuck;  // threads whose loop has made no turn for too long
  std::chrono::steady_clock::time_point now;
};

/// Returns all metrics of the aggregator, without those of transports that it does not use.
[[nodiscard]] service::MetricPage metrics_page(const DaemonStatus& status);
/// Returns JSON: "status" is ok, draining or stuck. The page also says whether joins are accepted, and the reason if
/// they are not.
[[nodiscard]] std::string health_json(const DaemonStatus& status);
/// True while no thread hangs, whatever the manager does. While it is true, a monitor should not end the process.
[[nodiscard]] bool healthy(const DaemonStatus& status) noexcept;
/// Returns every lane, as JSON.
[[nodiscard]] std::string lanes_json(const DaemonStatus& status);

}  // namespace tributary::aggregator

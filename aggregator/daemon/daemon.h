#pragma once
// The aggregator process: its threads, the state that they share, their start and their end.
//
//   front door   accepts connections, reads one join frame from each, verifies it and hands the socket to a worker.
//                Over RDMA, where an established connection cannot change its thread, it hands over the request
//                (rdma_door.h); over UDP it sends each child to the port of a worker (udp_door.h)
//   worker 0..n  serves lanes; no other thread touches a lane
//   manager link registers, renews the lease, learns the key; may block
//   http         asks the workers for copies of their state, and writes pages
//   main         takes signals, feeds the watchdog, ends the process
//
// They share the memory budget and the key ring; for all other work they post calls to each other.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/daemon/dpdk_network.h"
#include "aggregator/daemon/front_door.h"
#include "aggregator/daemon/key_ring.h"
#include "aggregator/daemon/link_shares.h"
#include "aggregator/daemon/manager_link.h"
#include "aggregator/daemon/rdma_door.h"
#include "aggregator/daemon/settings.h"
#include "aggregator/daemon/status.h"
#include "aggregator/daemon/status_pages.h"
#include "aggregator/daemon/straggler_log.h"
#include "aggregator/daemon/trace_recorder.h"
#include "aggregator/daemon/udp_door.h"
#include "aggregator/daemon/worker_thread.h"
#include "service-kit/http/http_server.h"

namespace tributary::aggregator {

class Daemon {
 public:
  /// Starts the daemon, and returns when every thread runs; the manager may still be down. `settings` are resolved.
  /// Errc::bad_config for a mistake in the configuration, Errc::io for an address at which the daemon cannot listen.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(const Settings& settings);
  /// The destructor breaks the connections that are still open.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Returns the addresses at which children connect, in the order of listen, and whether each of them lives.
  [[nodiscard]] std::vector<ListenPlace> data_places() const;
  [[nodiscard]] Endpoint http_endpoint() const { return http_->local(); }
  [[nodiscard]] std::string ready_json() const;
  /// Reads the files of TLS again. The daemon also reads changed files without this call.
  void reload_tls() { http_->reload_tls(); }

  /// Starts the end and returns at once: another thread tells the manager, fails every lane, so that the groups go on
  /// by their fallback, and waits until the children have read the reason. shut_down() is true at most drain_limit
  /// later.
  void begin_shutdown(const std::string& reason);
  [[nodiscard]] bool shut_down() const noexcept { return shut_down_.load(std::memory_order_acquire); }

  /// Returns the names of the threads whose loop has made no turn for too long.
  [[nodiscard]] std::vector<std::string> stuck() const;
  /// Returns the sealed connections that ended since the last call because of changed records.
  [[nodiscard]] ChangedRecords::News take_changed_records() { return changed_->take(); }

 private:
  explicit Daemon(const Settings& settings);
  [[nodiscard]] Status load_identity();
  [[nodiscard]] Status start_workers();
  [[nodiscard]] Status start_rdma_workers(const WorkerSettings& worker);
  [[nodiscard]] Status start_udp_workers(const WorkerSettings& worker);
  [[nodiscard]] Status open_front_door();
  [[nodiscard]] Status open_udp_door();
  [[nodiscard]] Status open_rdma_door();
  [[nodiscard]] Status start_dpdk_workers(const WorkerSettings& worker);
  [[nodiscard]] Status open_dpdk_door();
  [[nodiscard]] Result<VerifiedJoin> verify(std::span<const std::byte> join);
  [[nodiscard]] Result<VerifiedJoin> verify_for(std::size_t worker, std::span<const std::byte> join);
  [[nodiscard]] Status open_http();
  void start_manager_link();
  [[nodiscard]] ListenPlaces* listen_places() const noexcept;
  [[nodiscard]] std::vector<Endpoint> advertised() const;
  [[nodiscard]] std::vector<std::uint32_t> data_down() const;

  [[nodiscard]] WorkerThread& worker_of(std::uint64_t group, std::uint32_t lane) noexcept;
  [[nodiscard]] transport::NearSettings transport_settings() const;
  [[nodiscard]] transport::VerbsSettings verbs_settings() const;
  [[nodiscard]] transport::UdpSettings udp_settings() const;
  [[nodiscard]] DaemonStatus status() const;
  [[nodiscard]] service::HttpReply page(const service::HttpHead& head);
  [[nodiscard]] manager_client::AggregatorLoad load() const;
  void set_draining(const std::string& reason);
  void drain_workers(const std::string& reason);
  void shut_down_within_limit(const std::string& reason);
  [[nodiscard]] bool all_sessions_ended() const;

  const Settings settings_;
  const std::shared_ptr<ChangedRecords> changed_ = std::make_shared<ChangedRecords>();
  KeyRing keys_;
  std::optional<ExchangeKey> exchange_;             // this aggregator's own key; load_identity() sets it
  std::shared_ptr<transport::LinkKeys> link_keys_;  // used by all transports that carry packets
  MemoryBudget budget_;
  TenantLimits tenants_;
  mutable std::mutex draining_mutex_;  // guards draining_ and shutting_down_
  std::string draining_;
  bool shutting_down_ = false;
  std::atomic<bool> up_{false};  // all threads run: pages may ask them
  std::atomic<bool> shut_down_{false};
  const VerbsModule* verbs_ = nullptr;       // set over RDMA
  std::unique_ptr<DpdkNetwork> dpdk_;        // set over DPDK
  StragglerLog straggler_log_;               // outlives the workers, which call it
  std::unique_ptr<LinkShares> link_shares_;  // set if the links have shares
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  // A door ends before the workers to which it hands connections. One of the three doors is set, or none over DPDK with
  // one worker, which listens itself.
  std::unique_ptr<FrontDoor> front_door_;
  std::vector<std::string> rails_;  // set over RDMA: addresses of the devices that settings_ names
  std::unique_ptr<RdmaDoor> rdma_door_;
  std::unique_ptr<UdpDoor> udp_door_;
  std::unique_ptr<ManagerLink> manager_;  // calls the workers
  TraceRecorder traces_;                  // used by the thread of http_
  StatusPages pages_;                     // calls all members above
  std::unique_ptr<service::HttpServer> http_;
  std::jthread shutdown_;
};

}  // namespace tributary::aggregator

#pragma once
// The aggregator process: which threads there are, what they share, how they start and end.
//
//   front door   accepts, reads one join frame each, verifies, hands the socket over; over RDMA, where a connection
//                cannot be handed over any more once it is one, it hands over the request (rdma_door.h); over UDP it
//                sends whoever knocks to the port of a worker (udp_door.h)
//   worker 0..n  serves lanes; nothing of a lane is ever touched by another thread
//   manager link registers, renews, learns the key; may block
//   http         asks the workers for copies, and writes pages
//   main         signals, the watchdog, the end
//
// They share the memory budget and the key ring; all else goes by posted calls.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/daemon/front_door.h"
#include "aggregator/daemon/key_ring.h"
#include "aggregator/daemon/manager_link.h"
#include "aggregator/daemon/rdma_door.h"
#include "aggregator/daemon/settings.h"
#include "aggregator/daemon/status.h"
#include "aggregator/daemon/status_pages.h"
#include "aggregator/daemon/udp_door.h"
#include "aggregator/daemon/worker_thread.h"
#include "service-kit/http/http_server.h"

namespace tributary::aggregator {

class Daemon {
 public:
  /// Everything is up when it returns; the manager need not be. `settings` are resolved. Errc::bad_config for what the
  /// configuration's owner must put right, Errc::io for addresses that cannot be listened on.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(const Settings& settings);
  /// Breaks what is still open.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Where connections come in, in the order of listen, and which of them live.
  [[nodiscard]] std::vector<ListenPlace> data_places() const;
  [[nodiscard]] Endpoint http_endpoint() const { return http_->local(); }
  [[nodiscard]] std::string ready_json() const;

  /// Tells the manager, moves every group to its fallback, waits for the last words; returns at once. At most
  /// drain_limit later shut_down() is true.
  void begin_shutdown(const std::string& reason);
  [[nodiscard]] bool shut_down() const noexcept { return shut_down_.load(std::memory_order_acquire); }

  /// Threads whose loop has not come round for too long.
  [[nodiscard]] std::vector<std::string> stuck() const;

 private:
  explicit Daemon(const Settings& settings);
  [[nodiscard]] Status load_identity();
  [[nodiscard]] Status start_workers();
  [[nodiscard]] Status start_rdma_workers(const WorkerSettings& worker);
  [[nodiscard]] Status start_udp_workers(const WorkerSettings& worker);
  [[nodiscard]] Status open_front_door();
  [[nodiscard]] Status open_udp_door();
  [[nodiscard]] Status open_rdma_door();
  // daemon_dpdk.cc
  [[nodiscard]] Status open_dpdk_device();
  [[nodiscard]] Status start_dpdk_workers(const WorkerSettings& worker);
  [[nodiscard]] Status open_dpdk_door();
  [[nodiscard]] Status start_dpdk_door();
  [[nodiscard]] std::optional<transport::DpdkStatistics> dpdk_door_statistics() const;
  [[nodiscard]] transport::DpdkSettings dpdk_settings(std::uint32_t queue) const;
  [[nodiscard]] bool needs_dpdk_door() const noexcept { return settings_.workers > 1; }
  [[nodiscard]] Result<VerifiedJoin> verify(std::span<const std::byte> join) const;
  [[nodiscard]] Result<VerifiedJoin> verify_for(std::size_t worker, std::span<const std::byte> join) const;
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
  [[nodiscard]] service::HttpReply page(std::string_view path) const;
  [[nodiscard]] manager_client::AggregatorLoad load() const;
  void set_draining(const std::string& reason);
  void drain_workers(const std::string& reason);
  void shut_down_within_limit(const std::string& reason);
  [[nodiscard]] bool all_sessions_ended() const;

  const Settings settings_;
  KeyRing keys_;
  std::optional<ExchangeKey> exchange_;             // ours; since load_identity()
  std::shared_ptr<transport::LinkKeys> link_keys_;  // of all transports that carry packets
  MemoryBudget budget_;
  mutable std::mutex draining_mutex_;  // guards draining_ and shutting_down_
  std::string draining_;
  bool shutting_down_ = false;
  std::atomic<bool> up_{false};  // all threads are there: pages may ask them
  std::atomic<bool> shut_down_{false};
  std::shared_ptr<transport::DpdkDevice> dpdk_device_;  // of all workers, and the door
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::unique_ptr<FrontDoor> front_door_;  // ends before the workers that it hands to; one of the three is there, or,
                                           // over DPDK with one worker, none: it listens itself
  std::vector<std::string> rails_;         // over RDMA: addresses of the devices that settings_ names
  std::unique_ptr<RdmaDoor> rdma_door_;
  std::unique_ptr<UdpDoor> udp_door_;
  transport::DpdkTransport* dpdk_door_ = nullptr;  // udp_door_'s, over DPDK
  std::unique_ptr<ManagerLink> manager_;           // asks the workers
  StatusPages pages_;                              // asks all of the above
  std::unique_ptr<service::HttpServer> http_;
  std::jthread shutdown_;
};

}  // namespace tributary::aggregator

#pragma once
// One worker with its own thread and its own transport. Other threads post calls to it; it answers with
// copies.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/modules/dpdk_module.h"
#include "aggregator/modules/verbs_module.h"
#include "aggregator/worker/worker.h"
#include "tributary/transport/near.h"
#include "tributary/transport/udp.h"

namespace tributary::aggregator {

/// The state of a worker at one time, copied on its own thread.
struct WorkerSnapshot {
  WorkerMetrics metrics;
  std::vector<LaneStatus> lanes;
  std::uint64_t sessions = 0;
  transport::TcpStatistics tcp;
  transport::ShmStatistics shm;
  std::optional<transport::VerbsStatistics> verbs;  // set over RDMA
  transport::UdpStatistics udp;
  transport::DpdkStatistics dpdk;
};

class WorkerThread {
 public:
  /// Starts the thread. `budget` must outlive it.
  WorkerThread(std::uint32_t index, MemoryBudget& budget, WorkerSettings settings,
               const transport::NearSettings& transport_settings);
  /// Starts a worker over RDMA: a listener routes connections to rdma(), and the worker verifies their joins.
  [[nodiscard]] static std::unique_ptr<WorkerThread> over_rdma(std::uint32_t index, MemoryBudget& budget,
                                                               WorkerSettings settings, const VerbsModule& verbs,
                                                               std::unique_ptr<transport::Transport> transport,
                                                               Worker::VerifyJoin verify);
  /// Starts a worker over UDP, which listens at its own port on `host`. The door sends connections there, and the
  /// worker verifies their joins. Errc::io: it cannot listen.
  [[nodiscard]] static Result<std::unique_ptr<WorkerThread>> over_udp(std::uint32_t index, MemoryBudget& budget,
                                                                      WorkerSettings settings, const std::string& host,
                                                                      const transport::UdpSettings& transport_settings,
                                                                      Worker::VerifyJoin verify);
  /// Starts a worker over a queue of a DPDK device, which listens at `at`.
  [[nodiscard]] static Result<std::unique_ptr<WorkerThread>> over_dpdk(std::uint32_t index, MemoryBudget& budget,
                                                                       WorkerSettings settings, const DpdkModule& dpdk,
                                                                       std::unique_ptr<transport::Transport> transport,
                                                                       const Endpoint& at, Worker::VerifyJoin verify);
  /// Ends the thread, which breaks the connections that are still open.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // ---- Calls of any thread; all return at once
  /// Returns the transport to which a listener of RDMA routes connections.
  [[nodiscard]] transport::Transport* rdma() const noexcept { return transport_.get(); }
  /// Returns the port at which the worker listens, over UDP and DPDK.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Serves a connection whose join was verified, over TCP or shared memory.
  void take(std::unique_ptr<transport::HandedOver> connection, VerifiedJoin join);
  void drain(std::string reason);
  void undrain();
  [[nodiscard]] std::future<WorkerSnapshot> snapshot();
  /// Returns the worker's trace, of which one thread at a time may begin and take recordings.
  [[nodiscard]] WorkerTrace& trace() noexcept { return worker_.trace(); }
  /// Returns the time of the last turn of the worker's loop.
  [[nodiscard]] std::chrono::steady_clock::time_point last_turn() const noexcept;

 private:
  WorkerThread(std::unique_ptr<transport::Transport> transport, MemoryBudget& budget, WorkerSettings settings,
               Worker::VerifyJoin verify);
  [[nodiscard]] Status listen(const Endpoint& at);
  void start(std::uint32_t index);
  void run(const std::stop_token& stop);
  [[nodiscard]] WorkerSnapshot copy() const;

  std::unique_ptr<transport::Transport> transport_;
  transport::NearTransport* near_ = nullptr;             // the same object as transport_, over TCP or shared memory
  std::function<void(WorkerSnapshot&)> add_statistics_;  // adds the statistics of transport_
  Worker worker_;
  std::unique_ptr<transport::Listener> listener_;  // set over UDP and over DPDK
  std::uint16_t port_ = 0;                         // the port of listener_
  std::atomic<std::chrono::steady_clock::duration> last_turn_;
  std::jthread thread_;  // declared last, because it uses all members above
};

inline constexpr std::chrono::milliseconds kSnapshotLimit{1000};
/// Returns a snapshot from each worker that answers within `limit`.
[[nodiscard]] std::vector<WorkerSnapshot> snapshots_of(const std::vector<std::unique_ptr<WorkerThread>>& workers,
                                                       std::chrono::milliseconds limit);

}  // namespace tributary::aggregator

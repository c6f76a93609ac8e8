#include "aggregator/daemon/worker_thread.h"

#include <pthread.h>

namespace tributary::aggregator {
namespace {

// The time between two ticks, short enough for time-outs of seconds. A tick visits all sessions, so a thread does not
// tick in every turn.
constexpr auto kTickPeriod = std::chrono::milliseconds(50);

}  // namespace

WorkerThread::WorkerThread(std::uint32_t index, MemoryBudget& budget, WorkerSettings settings,
                           const transport::NearSettings& transport_settings)
    : transport_(std::make_unique<transport::NearTransport>(transport_settings)),
      near_(static_cast<transport::NearTransport*>(transport_.get())),
      add_statistics_([near = near_](WorkerSnapshot& to) {
        to.tcp = near->tcp_statistics();
        to.shm = near->shm_statistics();
      }),
      worker_(*transport_, budget, std::move(settings)),
      last_turn_(std::chrono::steady_clock::now().time_since_epoch()) {
  start(index);
}

WorkerThread::WorkerThread(std::unique_ptr<transport::Transport> transport, MemoryBudget& budget,
                           WorkerSettings settings, Worker::VerifyJoin verify)
    : transport_(std::move(transport)),
      worker_(*transport_, std::move(verify), budget, std::move(settings)),
      last_turn_(std::chrono::steady_clock::now().time_since_epoch()) {}

std::unique_ptr<WorkerThread> WorkerThread::over_rdma(std::uint32_t index, MemoryBudget& budget,
                                                      WorkerSettings settings, const VerbsModule& verbs,
                                                      std::unique_ptr<transport::Transport> transport,
                                                      Worker::VerifyJoin verify) {
  std::unique_ptr<WorkerThread> thread(
      new WorkerThread(std::move(transport), budget, std::move(settings), std::move(verify)));
  verbs.accept_routed(*thread->transport_, &thread->worker_);
  thread->add_statistics_ = [&verbs, &from = *thread->transport_](WorkerSnapshot& to) {
    to.verbs = verbs.statistics(from);
  };
  thread->start(index);
  return thread;
}

Result<std::unique_ptr<WorkerThread>> WorkerThread::over_udp(std::uint32_t index, MemoryBudget& budget,
                                                             WorkerSettings settings, const std::string& host,
                                                             const transport::UdpSettings& transport_settings,
                                                             Worker::VerifyJoin verify) {
  auto transport = std::make_unique<transport::UdpTransport>(transport_settings);
  const auto& udp = *transport;
  std::unique_ptr<WorkerThread> thread(
      new WorkerThread(std::move(transport), budget, std::move(settings), std::move(verify)));
  thread->add_statistics_ = [&udp](WorkerSnapshot& to) { to.udp = udp.statistics(); };
  if (auto ok = thread->listen({host, 0}); !ok) return std::unexpected(ok.error());
  thread->start(index);
  return thread;
}

Result<std::unique_ptr<WorkerThread>> WorkerThread::over_dpdk(std::uint32_t index, MemoryBudget& budget,
                                                              WorkerSettings settings, const DpdkModule& dpdk,
                                                              std::unique_ptr<transport::Transport> transport,
                                                              const Endpoint& at, Worker::VerifyJoin verify) {
  std::unique_ptr<WorkerThread> thread(
      new WorkerThread(std::move(transport), budget, std::move(settings), std::move(verify)));
  thread->add_statistics_ = [&dpdk, &from = *thread->transport_](WorkerSnapshot& to) {
    to.dpdk = dpdk.statistics(from);
  };
  if (auto ok = thread->listen(at); !ok) return std::unexpected(ok.error());
  thread->start(index);
  return thread;
}

Status WorkerThread::listen(const Endpoint& at) {
  auto listener = transport_->listen(at, worker_);
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  port_ = listener_->local().port;
  return {};
}

void WorkerThread::start(std::uint32_t index) {
  thread_ = std::jthread([this, index](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), ("worker-" + std::to_string(index)).c_str());
    run(stop);
  });
}

WorkerThread::~WorkerThread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->post([] {});  // wakes the worker's thread
  thread_.join();
}

void WorkerThread::run(const std::stop_token& stop) {
  transport::TimePoint next_tick = transport_->now() + kTickPeriod;
  while (!stop.stop_requested()) {
    const transport::TimePoint before = transport_->now();
    transport_->poll(std::max(transport::Duration::zero(), next_tick - before));
    const transport::TimePoint now = transport_->now();
    last_turn_.store(now.time_since_epoch(), std::memory_order_relaxed);
    worker_.turn_ends();
    if (now < next_tick) continue;
    worker_.tick(now);
    next_tick = now + kTickPeriod;
  }
}

void WorkerThread::take(std::unique_ptr<transport::HandedOver> connection, VerifiedJoin join) {
  // Closes the connection if the call never runs. It is shared, because a posted call can be copied.
  auto handed = std::make_shared<std::unique_ptr<transport::HandedOver>>(std::move(connection));
  transport_->post([this, handed, join = std::move(join)] {
    worker_.take(join, [&](transport::ChannelHandler& handler) { return near_->adopt(std::move(*handed), handler); });
  });
}

void WorkerThread::drain(std::string reason) {
  transport_->post([this, reason = std::move(reason)] { worker_.drain(reason); });
}

void WorkerThread::undrain() {
  transport_->post([this] { worker_.undrain(); });
}

std::future<WorkerSnapshot> WorkerThread::snapshot() {
  auto promise = std::make_shared<std::promise<WorkerSnapshot>>();
  auto future = promise->get_future();
  transport_->post([this, promise] { promise->set_value(copy()); });
  return future;
}

WorkerSnapshot WorkerThread::copy() const {
  WorkerSnapshot copy{.metrics = worker_.metrics(), .lanes = worker_.lanes(), .sessions = worker_.sessions()};
  add_statistics_(copy);
  return copy;
}

std::chrono::steady_clock::time_point WorkerThread::last_turn() const noexcept {
  return std::chrono::steady_clock::time_point(last_turn_.load(std::memory_order_relaxed));
}

std::vector<WorkerSnapshot> snapshots_of(const std::vector<std::unique_ptr<WorkerThread>>& workers,
                                         std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::vector<std::future<WorkerSnapshot>> asked;
  for (const auto& worker : workers) asked.push_back(worker->snapshot());
  std::vector<WorkerSnapshot> answers;
  for (auto& future : asked) {
    if (future.wait_until(deadline) == std::future_status::ready) answers.push_back(future.get());
  }
  return answers;
}

}  // namespace tributary::aggregator

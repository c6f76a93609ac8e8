#pragma once
// One communicator behind the C API: its progress thread, and the requests that the thread completes.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/arguments.h"
#include "client/api/handle_table.h"
#include "client/api/progress_thread.h"
#include "client/api/request.h"
#include "client/api/settings.h"
#include "client/api/spare_meetings.h"
#include "client/api/status_port.h"
#include "client/gpu/stager.h"

namespace tributary::client {

/// Memory that calls will use repeatedly. Ranks of the same host map it, if it can be shared. For memory of a GPU the
/// library has prepared the resources of its calls. The transport tcp needs no further registration.
struct RegisteredMemory {
  std::uint64_t comm_id = 0;
  const void* address = nullptr;
  std::size_t bytes = 0;
  std::unique_ptr<transport::KeptMemory> kept;  // nullptr: the transport needs no registration
  std::unique_ptr<transport::KeptMemory> lent;  // nullptr: no connection reads this memory in place
  std::vector<local::AnnouncedRange> announced{};
  std::string not_shared{};  // the reason why no rank of this host maps the memory
};

class Comm {
 public:
  /// Makes a communicator. Blocks until the ranks have met, at most for the time-out. After an error no part of it is
  /// left.
  [[nodiscard]] static Result<std::shared_ptr<Comm>> create(std::uint32_t nranks, const UniqueId& id,
                                                            std::uint32_t rank, const ClientSettings& settings);
  Comm(std::uint32_t nranks, std::uint32_t rank);
  ~Comm();

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return nranks_; }
  [[nodiscard]] Ops& ops() noexcept { return ops_; }
  [[nodiscard]] CommErrors& errors() const noexcept { return *errors_; }
  [[nodiscard]] std::shared_ptr<CommErrors> shared_errors() const noexcept { return errors_; }
  /// True in the process that made this object; false in a child of that process.
  [[nodiscard]] bool of_this_process() const noexcept;

  /// Queues the call; the request gets the outcome. Errc::bad_argument: finalize() was called before. Errc::aborted:
  /// the communicator has ended.
  using Next = ProgressThread::Next;
  [[nodiscard]] Status start(const CheckedCall& call, const std::shared_ptr<Request>& request, Next next);
  /// Queues a message. Without a peer the message is a receive from any rank.
  [[nodiscard]] Status start(std::optional<std::uint32_t> peer, Message message,
                             const std::shared_ptr<Request>& request, Next next);
  /// Waits until the request, which belongs to this communicator, is done. This thread drives the communicator
  /// meanwhile. Returns false at the deadline.
  [[nodiscard]] bool wait(Request& request, std::optional<Request::TimePoint> deadline = std::nullopt);
  /// True if waiting threads have other work to do meanwhile (while_waiting of tributary_config).
  [[nodiscard]] bool has_other_work() const noexcept { return static_cast<bool>(while_waiting_); }
  /// Does the work that need not wait.
  void help() {
    if (local_) local_->queue.drive();
    thread_->help();
  }
  /// True if the ranks share memory, which then carries all collectives.
  [[nodiscard]] bool local() const noexcept { return local_ != nullptr; }
  /// Runs a call in shared memory; call it only if local() returns true. Blocks until the call has ended; this thread
  /// does its part of the work itself.
  [[nodiscard]] Status run(const CheckedCall& call);
  [[nodiscard]] Result<CommunicatorInfo> info();
  /// Returns what other communicators are made from. One thread at a time uses the meetings in it.
  [[nodiscard]] NextGroups& next_groups() noexcept { return next_groups_; }
  /// Registers memory with this communicator's transport. Returns nullptr if the transport registers no memory, or the
  /// communicator has ended.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> keep_registered(std::span<const std::byte> memory) const;

  /// Announces the memory to the ranks of this host, so that they map it. Returns the reason why they cannot map it; an
  /// empty text if they can.
  [[nodiscard]] std::string announce(RegisteredMemory& memory);

  /// Prepares the streams and threads for calls with memory of this GPU.
  [[nodiscard]] Status prepare_gpu(int device) { return stager_->prepare(device); }
  /// Registers memory of a GPU, if the network can reach it, as long as the returned object lives. nullptr: its data
  /// pass through host memory.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> keep_gpu_memory(std::span<std::byte> memory);

  /// Waits until every rank has called finalize(), at most for the time-out.
  [[nodiscard]] Status finalize() { return finalize(false); }
  /// Calls finalize(), unless it was called before or the communicator has failed; then stops. Returns the error of
  /// finalize().
  [[nodiscard]] Status destroy();
  /// Ends every operation on all ranks, then stops.
  void abort(const std::string& reason);

 private:
  enum class Phase : std::uint8_t { open, finalizing, finalized };
  [[nodiscard]] bool wait_without_other_work(Request& request, std::optional<Request::TimePoint> deadline,
                                             bool comes_back);
  [[nodiscard]] Status may_start() const;
  [[nodiscard]] Status run_on_host(const CheckedCall& call);
  /// Counts the values of a call whose input is in host memory. The error names a NaN of the input, with which the
  /// communicator has ended.
  [[nodiscard]] Result<std::unique_ptr<CallValues>> look_at_input(const CheckedCall& call);
  [[nodiscard]] Status start(const CheckedCall& call, std::shared_ptr<gpu::DirectCall> direct,
                             const std::shared_ptr<Request>& request, Next next);
  [[nodiscard]] gpu::Stager::Hooks stager_hooks();
  [[nodiscard]] Result<std::shared_ptr<gpu::StagedCall>> stage(const CheckedCall& call);
  [[nodiscard]] gpu::PathChoice choose_gpu_path(gpu::CudaDriver& driver, int device) const;
  void tell(LogLevel level, const std::string& line) const;
  void serve(const ClientSettings& settings, const std::shared_ptr<FlightRecord>& record);
  void abort_all(const Error& why);
  /// Returns the function that completes a staged call: the call ends on another thread, which then wakes the driver.
  [[nodiscard]] std::function<void(const Status&)> complete_from_outside(const std::shared_ptr<Request>& request);
  [[nodiscard]] Status finalize(bool unless_failed);
  using Done = std::function<void(const Status&)>;
  /// Runs `question` on the progress thread, and waits until it has called `done`, or the communicator has ended.
  [[nodiscard]] Status ask(std::function<void(Communicator&, Done)> question);
  /// Ends the thread, and then every request of this communicator and its memory registrations.
  void stop();

  const std::uint32_t nranks_;
  const std::uint32_t rank_;
  const std::uint64_t process_;
  const std::shared_ptr<CommErrors> errors_;
  std::atomic<Phase> phase_{Phase::open};
  std::shared_ptr<local::GroupCalls> local_;                // set only in create()
  std::string transport_name_;                              // set only in create()
  gpu::DirectMode gpudirect_ = gpu::DirectMode::automatic;  // set only in create()
  Ops ops_;                                                 // its numerics are set only in create()
  ValueCheck check_values_ = ValueCheck::off;               // set only in create()
  std::shared_ptr<FlightRecord> record_;                    // set only in create()
  ClientSettings::WhileWaiting while_waiting_;              // set only in create(); may be empty
  NextGroups next_groups_;                                  // its secret is set only in create()
  std::unique_ptr<ServedRecord> served_;                    // set only in create(); nullptr: no port
  std::unique_ptr<ProgressThread> thread_;
  std::unique_ptr<gpu::Stager> stager_;  // declared after thread_: its copies use the thread when they end
};

// The live handles of the process. No table is ever destroyed: threads may still use it while the process ends.
using CommTable = HandleTable<tributary_comm, Comm, HandleKind::communicator>;
using RequestTable = HandleTable<tributary_request, Request, HandleKind::request>;
using MemoryTable = HandleTable<tributary_mem, RegisteredMemory, HandleKind::memory>;
[[nodiscard]] CommTable& comms();
[[nodiscard]] RequestTable& requests();
[[nodiscard]] MemoryTable& memories();

}  // namespace tributary::client

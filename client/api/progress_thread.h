#pragma once
// The thread behind one communicator: it makes transport and communicator, drives them while no caller waits, and ends
// them. A caller that waits drives them itself (wait()), so that a small operation needs no change of threads; UCX and
// Open MPI make progress in this way, too.
//
// The driver owns transport and communicator (DrivingSeat). The thread leaves the seat when a caller wants it. It then
// parks, and checks every kParkPeriod whether callers still come. It drives again when no caller has come for kLinger,
// or at once if an operation is outstanding for which no caller waits.
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/api/driving_seat.h"
#include "client/api/local_care.h"
#include "client/api/meeting.h"
#include "client/api/request.h"
#include "client/api/statistics_file.h"
#include "client/communicator/communicator.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client {

struct ProgressParts {
  std::unique_ptr<Meeting> meeting;                 // on rank 0; the communicator takes over its transport
  std::unique_ptr<transport::Transport> transport;  // the transport on other ranks
  // The manager's service; set on rank 0 if a manager is configured. Its answers arrive on that transport.
  std::unique_ptr<GroupService> service;
  CommunicatorSettings settings;
  std::string transport_name;
  std::string flight_folder{};      // gets the flight record if the communicator fails; empty: no file
  std::string statistics_folder{};  // gets the statistics at the end, from rank 0; empty: no file
};

class ProgressThread {
 public:
  using Call = std::move_only_function<void(Communicator&)>;

  struct Events {
    /// Called once, when the ranks have met, or with the error if they cannot meet. If there is a group, the caller
    /// passes all collectives to the group, and none to submit().
    std::function<void(const Status&, const std::shared_ptr<local::GroupCalls>&)> ready;
    /// Called last: communicator, transport and all references to callers' buffers are gone. Submitted calls without an
    /// answer never get an answer.
    std::function<void(const Error& why)> over;
  };
  /// Starts the thread, which calls the events.
  ProgressThread(ProgressParts parts, Events events);
  /// Calls stop().
  ~ProgressThread();

  enum class Next : std::uint8_t {
    wait,   // the caller calls wait() for this call's outcome at once
    leave,  // the caller does other work
    large,  // the caller does other work, and the start of the call takes some time
  };
  /// Runs `call` at once if no thread drives, else soon on the driver's thread, in the order of the calls. Returns
  /// false if the communicator has ended; `call` is then dropped. Any thread may call it.
  [[nodiscard]] bool submit(Call call, Next next = Next::leave);
  /// Waits until a submitted call has completed the request. Meanwhile drives the communicator, if no other thread
  /// does. Returns false at the deadline. `comes_back`: the caller then waits again at once, so the thread need not take
  /// over. Any thread may call it.
  [[nodiscard]] bool wait(Request& request, std::optional<transport::TimePoint> deadline = std::nullopt,
                          bool comes_back = false);
  /// Does the work that is due, if no thread drives. Any thread may call it.
  void help();
  /// Registers memory with the transport. Returns nullptr if the transport registers no memory, or is gone. Any thread
  /// may call it.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> keep_registered(std::span<const std::byte> memory);
  /// Lends memory to the other sides of connections through shared memory. Returns nullptr if the transport has no such
  /// connections, or is gone. Any thread may call it.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> lend(const std::byte* address, transport::SharedRange range);
  /// Sends the queued frames, destroys communicator and transport, and joins the thread. Any other thread may call it;
  /// later calls do nothing.
  void stop();

 private:
  using Driver = DrivingSeat::Driver;

  // The thread calls these functions.
  void run();
  void drive();
  void let_callers_drive();
  void park();
  [[nodiscard]] bool take_over();
  // The driver calls these functions.
  void turn(transport::TimePoint until);
  void run_calls();
  void leave_seat(bool comes_back);
  // Callers' threads call these functions.
  void drive_for(Request& request, const std::optional<transport::TimePoint>& deadline);
  template <class Work>
  void as_caller(Work work);
  void wake_driver();
  void attend_to_local();
  void recall();
  void hurry();
  void tell_path(const std::string& line, bool unwanted) const;
  void tell_end() const;
  void tell_failure();
  void keep_flight_record();
  void keep_statistics() const;
  void flush();

  ProgressParts parts_;
  Events events_;
  transport::Transport* transport_;
  std::unique_ptr<Communicator> communicator_;
  bool failure_told_ = false;
  bool flight_kept_ = false;
  StatisticsFile statistics_;
  bool ready_ = false;
  transport::TimePoint next_tick_{};
  std::exception_ptr broken_;  // exception of a caller's turn; the thread ends the communicator with it

  LocalCare local_care_;  // set before the thread leaves the seat for the first time

  DrivingSeat seat_;                        // guards all members above
  std::atomic<std::uint32_t> callers_{0};   // callers that drive, or want to drive
  std::atomic<std::uint32_t> sleepers_{0};  // callers that wait while another caller drives
  std::atomic<std::uint64_t> turns_{0};     // turns of all drivers
  std::atomic<bool> unfinished_{false};     // the last driver left unfinished operations

  std::uint64_t turns_seen_ = 0;  // value of turns_ when the thread parked; only the thread uses this value
  transport::TimePoint driven_at_{};
  std::mutex park_mutex_;
  std::condition_variable park_changed_;
  bool recalled_ = false;              // guarded by park_mutex_
  bool hurried_ = false;               // guarded by park_mutex_
  transport::Duration park_period_{};  // only used by the thread
  std::atomic<bool> parked_{false};
  std::atomic<bool> patient_{false};  // parked for a period that is too long for an operation without a waiting caller

  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Call> calls_;             // guarded by mutex_
  bool woken_ = false;                  // guarded by mutex_: run_calls() was posted and has not begun
  bool over_ = false;                   // guarded by mutex_: the transport may be gone
  std::atomic<bool> has_calls_{false};  // changes with mutex_ held; a driver that finds false need not lock
  std::once_flag stopped_;
  std::thread thread_;  // last member: it uses the other members
};

}  // namespace tributary::client

#pragma once
// The thread behind one communicator: it makes transport and communicator, drives them while no caller waits, and ends
// them. A caller that waits drives them itself (wait()), so that the path of a small operation has no hand-over between
// threads; UCX and Open MPI make progress in this way, too.
//
// The driver owns transport and communicator (DrivingSeat). The thread leaves the seat when a caller wants it, parks,
// looks every kParkPeriod whether callers still come, and drives again when none has come for kLinger, or at once if an
// operation is outstanding that no caller waits for.
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
#include "client/communicator/communicator.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client {

struct ProgressParts {
  std::unique_ptr<Meeting> meeting;                 // rank 0's; its transport becomes the communicator's
  std::unique_ptr<transport::Transport> transport;  // the transport of the other ranks
  // Set on rank 0 if a manager is configured; answers arrive on that transport.
  std::unique_ptr<GroupService> service;
  CommunicatorSettings settings;
  std::string transport_name;
};

class ProgressThread {
 public:
  using Call = std::move_only_function<void(Communicator&)>;

  struct Events {
    /// Called once, when the ranks have met, or with the reason why they cannot. If there is a group, the caller passes
    /// all collectives to it, and none to submit().
    std::function<void(const Status&, const std::shared_ptr<local::GroupCalls>&)> ready;
    /// Called last: communicator and transport are gone, and so is every reference to callers' buffers. Calls that were
    /// submitted and have no answer yet never get one.
    std::function<void(const Error& why)> over;
  };
  /// Starts the thread, on which the events come.
  ProgressThread(ProgressParts parts, Events events);
  /// Calls stop().
  ~ProgressThread();

  enum class Next : std::uint8_t {
    wait,   // the caller will wait() for this call's outcome at once
    leave,  // the caller will go away
    large,  // the caller will go away, and starting the call takes a while
  };
  /// Runs `call` at once if no thread drives, else soon on the driver's thread; in the order of the calls. Returns
  /// false if the communicator is over and the call was dropped. Any thread.
  [[nodiscard]] bool submit(Call call, Next next = Next::leave);
  /// Waits until the request is done, which a submitted call completes; meanwhile drives the communicator if no other
  /// thread does. Returns false at the deadline. Any thread.
  [[nodiscard]] bool wait(Request& request, std::optional<transport::TimePoint> deadline = std::nullopt);
  /// Does what is due now, if no thread drives. Any thread.
  void help();
  /// Returns nullptr if the transport registers nothing, or is gone. Any thread.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> keep_registered(std::span<const std::byte> memory);
  /// Lends the memory to the other sides of connections through shared memory. Returns nullptr if there are no such
  /// connections, or will be none. Any thread.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> lend(const std::byte* address, transport::SharedRange range);
  /// Sends what is queued, destroys communicator and transport, joins the thread. Any other thread may call it; the
  /// first call counts.
  void stop();

 private:
  using Driver = DrivingSeat::Driver;

  // Called by the thread.
  void run();
  void drive();
  void let_callers_drive();
  void park();
  [[nodiscard]] bool take_over();
  // Called by the driver.
  void turn(transport::TimePoint until);
  void run_calls();
  void leave_seat(bool comes_back);
  // Called by callers.
  void drive_for(Request& request, const std::optional<transport::TimePoint>& deadline);
  template <class Work>
  void as_caller(Work work, bool comes_back);
  void wake_driver();
  void attend_to_local();
  void recall();
  void hurry();
  void tell_path(const std::string& line, bool unwanted) const;
  void tell_end() const;
  void tell_failure();
  void flush();

  ProgressParts parts_;
  Events events_;
  transport::Transport* transport_;
  std::unique_ptr<Communicator> communicator_;
  bool failure_told_ = false;
  bool ready_ = false;
  transport::TimePoint next_tick_{};
  std::exception_ptr broken_;  // the exception of a caller's turn; the thread ends the communicator with it

  LocalCare local_care_;  // set before the seat is left for the first time

  DrivingSeat seat_;                        // guards all members above
  std::atomic<std::uint32_t> callers_{0};   // callers that drive, or want to
  std::atomic<std::uint32_t> sleepers_{0};  // callers that wait while another caller drives
  std::atomic<std::uint64_t> turns_{0};     // turns taken by any driver
  std::atomic<bool> unfinished_{false};     // the last driver left operations behind

  std::uint64_t turns_seen_ = 0;  // the thread's own: the count when it parked
  transport::TimePoint driven_at_{};
  std::mutex park_mutex_;
  std::condition_variable park_changed_;
  bool recalled_ = false;              // under park_mutex_
  bool hurried_ = false;               // under park_mutex_
  transport::Duration park_period_{};  // the thread's own
  std::atomic<bool> parked_{false};
  std::atomic<bool> patient_{false};  // parked for a long period, too long for an operation that no caller waits for

  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Call> calls_;  // under mutex_
  bool woken_ = false;       // under mutex_: run_calls() was posted and has not begun
  bool over_ = false;        // under mutex_: the transport may be gone
  std::once_flag stopped_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tributary::client

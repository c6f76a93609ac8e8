#pragma once
// The thread behind one communicator: it makes transport and communicator, drives them while nobody waits, and ends
// them. A caller that waits drives them itself (wait()), so that the path of a small operation has no hand-over from
// one thread to another; UCX and Open MPI make progress in this way too.
//
// Who drives owns transport and communicator (DrivingSeat). The thread leaves the seat when a caller wants it, parks,
// looks every kParkPeriod whether callers still come, and drives again when none has come for kLinger, or at once when
// something is outstanding that nobody waits for.
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
  std::unique_ptr<Meeting> meeting;                 // rank 0's: its transport is the communicator's
  std::unique_ptr<transport::Transport> transport;  // the other ranks'
  std::unique_ptr<GroupService> service;            // rank 0's, if a manager is configured; answers on that transport
  CommunicatorSettings settings;
  std::string transport_name;
};

class ProgressThread {
 public:
  using Call = std::move_only_function<void(Communicator&)>;

  struct Events {
    /// The ranks have met, or cannot. With a group, all collectives are for that, and none for submit().
    std::function<void(const Status&, const std::shared_ptr<local::GroupCalls>&)> ready;
    /// The last one: communicator and transport are gone, and so is every reference to callers' buffers. What was
    /// submitted and has not answered never will.
    std::function<void(const Error& why)> over;
  };
  /// Events come on the new thread.
  ProgressThread(ProgressParts parts, Events events);
  /// stop()s.
  ~ProgressThread();

  enum class Next : std::uint8_t {
    wait,   // the caller will wait() for this call's outcome at once
    leave,  // or go away
    large,  // go away, and starting it takes a while
  };
  /// Runs `call` here and now if nobody drives, else soon on the driver's thread; in the order of the calls. False: it
  /// is over, and the call was dropped. Any thread.
  [[nodiscard]] bool submit(Call call, Next next = Next::leave);
  /// Until the request is done, which it becomes by a call that was submitted; meanwhile drives the communicator if
  /// nobody else does. False: the deadline came first. Any thread.
  [[nodiscard]] bool wait(Request& request, std::optional<transport::TimePoint> deadline = std::nullopt);
  /// Does what is to be done now, if nobody drives. Any thread.
  void help();
  /// nullptr: the transport registers nothing, or is gone. Any thread.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> keep_registered(std::span<const std::byte> memory);
  /// Lends it to the other sides of connections through shared memory. nullptr: there are none, or will be none. Any
  /// thread.
  [[nodiscard]] std::unique_ptr<transport::KeptMemory> lend(const std::byte* address, transport::SharedRange range);
  /// Sends what is queued, destroys communicator and transport, joins. Any thread but this one; the first counts.
  void stop();

 private:
  using Driver = DrivingSeat::Driver;

  // the thread
  void run();
  void drive();
  void let_callers_drive();
  void park();
  [[nodiscard]] bool take_over();
  // whoever drives
  void turn(transport::TimePoint until);
  void run_calls();
  void leave_seat(bool comes_back);
  // callers
  void drive_for(Request& request, const std::optional<transport::TimePoint>& deadline);
  template <class Work>
  void as_caller(Work work, bool comes_back);
  void wake_driver();
  void attend_to_local();
  void recall();
  void hurry();
  void tell_path(const std::string& line) const;
  void tell_failure();
  void flush();

  ProgressParts parts_;
  Events events_;
  transport::Transport* transport_;
  std::unique_ptr<Communicator> communicator_;
  bool failure_told_ = false;
  bool ready_ = false;
  transport::TimePoint next_tick_{};
  std::exception_ptr broken_;  // what a caller's turn threw: the thread ends the communicator by it

  LocalCare local_care_;  // set before the seat is left for the first time

  DrivingSeat seat_;                        // guards all above
  std::atomic<std::uint32_t> callers_{0};   // that drive, or want to
  std::atomic<std::uint32_t> sleepers_{0};  // that wait while another caller drives
  std::atomic<std::uint64_t> turns_{0};     // taken by anybody
  std::atomic<bool> unfinished_{false};     // the last driver left operations behind

  std::uint64_t turns_seen_ = 0;  // the thread's own, as it parks
  transport::TimePoint driven_at_{};
  std::mutex park_mutex_;
  std::condition_variable park_changed_;
  bool recalled_ = false;              // under park_mutex_
  bool hurried_ = false;               // under park_mutex_
  transport::Duration park_period_{};  // the thread's own
  std::atomic<bool> parked_{false};
  std::atomic<bool> patient_{false};  // parked for longer than is good for what nobody waits for

  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Call> calls_;  // under mutex_
  bool woken_ = false;       // under mutex_: run_calls() was posted and has not begun
  bool over_ = false;        // under mutex_: the transport may be gone
  std::once_flag stopped_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tributary::client

#pragma once
// The turns of a VerbsTransport. A turn handles completions, events of the connection manager and of the devices,
// posted calls, time-outs, connections that are due, and connections that have frames to send.
#include <sys/epoll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transport/socket/socket_core.h"
#include "transport/turn/deadlines.h"
#include "transport/turn/due_list.h"
#include "transport/turn/engine.h"
#include "transport/turn/turn_part.h"
#include "transport/verbs/device.h"
#include "transport/verbs/event_watch.h"
#include "transport/verbs/key_wait.h"
#include "transport/verbs/resources.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport {

namespace verbs {

class VerbsConnection;
using ConnectionPtr = std::shared_ptr<VerbsConnection>;

/// The marks that the core keeps in each connection.
struct TurnMarks {
  bool due = false;                       // the connection is in the core's list `due_`
  bool dirty = false;                     // the connection is in the core's list `dirty_`
  TimePoint deadline = TimePoint::max();  // max: no deadline
};

/// A copy of an event of the connection manager, so that the event is acknowledged at once: before that no id can be
/// destroyed.
struct Notice {
  rdma_cm_event_type event{};
  int status = 0;
  ConnectionIdPtr* request = nullptr;  // in a connect request: the new id, which the first owner takes
  std::array<std::byte, 64> data{};
  std::size_t data_bytes = 0;
  std::uint8_t reads = 0;  // this side's reads that the other side answers at the same time
};

/// The owner of an id of the connection manager: the id's context points to it.
class Notified {
 public:
  virtual ~Notified() = default;
  virtual void notice(const Notice& notice) = 0;
  virtual void shut_down() = 0;
};

}  // namespace verbs

class VerbsCore : public std::enable_shared_from_this<VerbsCore>,
                  public turn::Engine<VerbsCore>,
                  public turn::Rounds,
                  public verbs::KeyWait {
 public:
  [[nodiscard]] static Result<std::shared_ptr<VerbsCore>> create(const VerbsSettings& settings);
  ~VerbsCore();
  VerbsCore(const VerbsCore&) = delete;
  VerbsCore& operator=(const VerbsCore&) = delete;

  void shut_down();
  /// The functions of VerbsTransport.
  void drive(std::shared_ptr<SocketCore> beside);
  [[nodiscard]] Status device_at(const std::string& own_address) const;

  // ---- Calls of connections and listeners, on the transport's thread
  [[nodiscard]] const VerbsSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] rdma_event_channel* events() const noexcept { return events_.get(); }
  /// Finds or opens the device, with room for this number of completions.
  [[nodiscard]] Result<std::shared_ptr<verbs::Device>> device_of(ibv_context* context, std::uint32_t completions);
  /// Makes the core call turn() in this poll or the next.
  void make_due(verbs::VerbsConnection& connection);
  /// Makes the core call send_turn() soon.
  void make_dirty(verbs::VerbsConnection& connection);
  /// Gives the connection a number, which its work requests carry.
  [[nodiscard]] std::uint32_t enter(verbs::VerbsConnection& connection);
  void leave(std::uint32_t number) noexcept;
  void enter(verbs::Notified& listener) { listeners_.insert(&listener); }
  void leave(verbs::Notified& listener) noexcept { listeners_.erase(&listener); }
  /// Makes the core call time_out() at `at`. Replaces an earlier time.
  void set_timer(verbs::VerbsConnection& connection, TimePoint at);
  void clear_timer(verbs::VerbsConnection& connection) noexcept;
  /// Marks all requests that have completed; runs no callback.
  void take_all_completions() {
    while (take_completions()) {
    }
  }
  [[nodiscard]] bool shut() const noexcept { return ended(); }
  /// Copies memory. If the processor cannot access it, its driver makes the copy.
  [[nodiscard]] Status copy(std::span<std::byte> to, const std::byte* from);
  /// Does the same as keep(), for memory of `owner`.
  [[nodiscard]] std::uint64_t keep_device_memory(std::span<const std::byte> memory,
                                                 std::shared_ptr<DeviceMemory> owner);
  VerbsStatistics statistics;

  // ---- Calls of any thread. A promise holds for later sends and receives: the next poll() begins with it
  [[nodiscard]] std::uint64_t keep(std::span<const std::byte> memory);
  void unkeep(std::uint64_t number);

  Acceptor* routed_acceptor = nullptr;

  /// Handles the failure of a device, for one queue pair, or for all queue pairs on it (0).
  void device_failed(ibv_context* context, std::uint32_t queue_pair, const std::string& what);

 private:
  friend class turn::Engine<VerbsCore>;
  explicit VerbsCore(const VerbsSettings& settings)
      : Engine(settings.busy_poll, settings.spin_max), settings_(settings) {}
  // ---- Calls of the engine
  void begin_poll(bool waits);
  void end_poll() noexcept;
  [[nodiscard]] bool idle() const noexcept {
    return due_.empty() && dirty_.empty() && !has_posted() && (beside_ == nullptr || !beside_->has_work());
  }
  turn::Looked look(bool spins);
  turn::Looked sleep(TimePoint now, TimePoint until);
  [[nodiscard]] static TimePoint time() { return Clock::now(); }
  void wake() noexcept;

  [[nodiscard]] Status open();
  bool run_once();
  bool take_completions();
  void take_control();
  bool take_beside();
  void take_connection_events();
  void run_timers();
  void run_due();
  void flush_dirty();
  void sleep_until(TimePoint deadline);
  void hear(std::span<const epoll_event> told);
  enum class Told : std::uint64_t { wake, control, completions, beside };
  void watch(const verbs::FileDescriptor& set, int descriptor, Told told);
  /// The beginning or the end of a promise that memory stays.
  struct Promise {
    std::uint64_t number = 0;
    std::span<const std::byte> memory;
    bool ends = false;
  };
  void promise(const Promise& promise);
  void take_promises();
  void keep_promise(const Promise& promise);

  const VerbsSettings settings_;
  verbs::EventChannelPtr events_;
  verbs::FileDescriptor wake_;
  verbs::FileDescriptor epoll_;    // epoll set whose events end a sleep
  verbs::FileDescriptor control_;  // an epoll set in that one: events of the connection manager and
                                   // devices
  std::shared_ptr<verbs::EventWatch> event_watch_;
  verbs::EventWatch::Flag control_waits_ = std::make_shared<std::atomic<bool>>(false);
  std::uint64_t control_number_ = 0;    // this core's number in event_watch_
  std::shared_ptr<SocketCore> beside_;  // the transport that this transport drives; nullptr: none
  int beside_descriptor_ = -1;
  verbs::EventWatch::Flag beside_waits_ = std::make_shared<std::atomic<bool>>(false);
  std::uint64_t beside_number_ = 0;      // this core's number in event_watch_
  std::uint32_t turns_beside_left_ = 0;  // turns in which beside_ is still polled without a report
  bool beside_armed_ = true;             // event_watch_ will set beside_waits_
  verbs::KeptRanges kept_;
  std::size_t kept_of_devices_ = 0;  // number of promises for memory of devices
  std::atomic<std::uint64_t> next_kept_{1};
  std::atomic<std::thread::id> thread_{};  // the thread that polls
  std::vector<std::weak_ptr<verbs::Device>> devices_;
  std::vector<std::shared_ptr<verbs::Device>> devices_now_;  // devices whose completions are being taken
  std::vector<ibv_context*> contexts_;  // contexts with events in control_; the connection manager owns them
  std::unordered_map<std::uint32_t, verbs::VerbsConnection*> connections_;
  std::uint32_t next_number_ = 1;
  std::set<verbs::Notified*> listeners_;
  turn::Deadlines<verbs::VerbsConnection, &verbs::TurnMarks::deadline> timers_;
  turn::DueList<verbs::ConnectionPtr, &verbs::TurnMarks::due> due_;
  turn::DueList<verbs::ConnectionPtr, &verbs::TurnMarks::dirty> dirty_;
  std::uint32_t polls_without_clock_ = 0;
  // Promises and their ends in the order in which they were made: a promise may end before this thread has seen its
  // beginning.
  turn::Mailbox<Promise> promises_;
};

}  // namespace tributary::transport

#pragma once
// One I/O thread: a transport of its own, and the channels that the user's thread has given to it.
//
// The thread sleeps in its transport's poll(). Both directions wake the other side by the rule of turn/alarm.h, so a
// hand-over between two threads that are awake makes no system call.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "transport/io_threads/exchange.h"
#include "transport/io_threads/hand_over.h"
#include "transport/io_threads/io_end.h"
#include "transport/turn/alarm.h"
#include "tributary/transport/near.h"

namespace tributary::transport::io_threads {

class IoThread {
 public:
  /// `events_alarm` is the alarm of the user's thread; `wake_user` ends that thread's sleep.
  IoThread(const NearSettings& settings, std::uint32_t number, turn::Alarm& events_alarm,
           std::function<void()> wake_user);
  ~IoThread() { stop(); }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // ---- Calls of the user's thread
  void put(Command command) {
    commands_.put(std::move(command));
    dirty_ = true;
  }
  /// Wakes the thread if commands were put since the last kick().
  void kick();
  /// Closes the channel and waits until the thread no longer touches memory that the user has lent it.
  void close_and_wait(IoEnd& end);
  template <class Handle>
  std::size_t take_events(Handle handle) {
    return events_.take(handle);
  }
  [[nodiscard]] bool has_events() const noexcept { return !events_.empty(); }
  /// Ends the thread and all its channels. It does not carry out later commands.
  void stop();
  [[nodiscard]] bool stopped() const noexcept { return !thread_.joinable(); }
  /// Does the same as NearTransport::lend(). Any thread may call it.
  [[nodiscard]] std::unique_ptr<KeptMemory> lend(const std::byte* address, SharedRange range) {
    return inner_->lend(address, std::move(range));
  }

  // ---- Functions of the I/O thread
  void report(Event event);

 private:
  void run(std::uint32_t number);
  void carry_out(Command& command);
  void adopt_end(std::unique_ptr<IoEnd> end);
  void destroy(IoEnd& end);
  void look_at_flushes();
  [[nodiscard]] Duration longest_sleep() const noexcept;

  std::unique_ptr<NearTransport> inner_;
  turn::Alarm& events_alarm_;
  const std::function<void()> wake_user_;

  HandOver<Command> commands_;
  HandOver<Event> events_;
  turn::Alarm alarm_;                         // rung after commands were put
  bool dirty_ = false;                        // used by the user's thread: commands were put since the last kick()
  std::uint64_t tickets_ = 0;                 // used by the user's thread: number of the last close
  std::atomic<std::uint64_t> confirmed_ = 0;  // number of the last close that was carried out
  std::atomic<bool> stopping_ = false;

  std::vector<std::unique_ptr<IoEnd>> ends_;  // only the I/O thread uses it
  std::vector<IoEnd*> flushing_;              // only the I/O thread uses it
  std::thread thread_;                        // declared last, because it uses the other members
};

}  // namespace tributary::transport::io_threads

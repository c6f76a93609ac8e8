#pragma once
// The user's side of all I/O threads: the ends of their channels, and the events that the threads report.
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/io_threads/io_thread.h"
#include "transport/io_threads/user_end.h"
#include "transport/turn/due_list.h"

namespace tributary::transport::io_threads {

class Core final : public std::enable_shared_from_this<Core> {
 public:
  /// The threads start with the first channel. `wake_user` ends the sleep of the user's thread; any thread calls it.
  Core(const NearSettings& settings, std::uint32_t threads, std::function<void()> wake_user);
  ~Core() { shut_down(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit);
  [[nodiscard]] std::unique_ptr<Channel> adopt(std::unique_ptr<HandedOver> open, ChannelHandler& handler,
                                               std::string peer);
  /// Runs the callbacks that are due, and passes their commands to the I/O threads. Returns the number of callbacks.
  std::size_t turn();
  /// Returns false if an event has come, and the user's thread must stay awake. wake_up() must follow in either case.
  [[nodiscard]] bool fall_asleep() noexcept;
  void wake_up() noexcept { alarm_.wake_up(); }
  void shut_down();
  /// Does the same as NearTransport::lend(), for `own` and all I/O threads that have started. Any thread may call it.
  [[nodiscard]] std::unique_ptr<KeptMemory> lend(NearTransport& own, const std::byte* address, SharedRange range);

  // ---- Calls of the ends
  [[nodiscard]] std::uint32_t frames_queued_max() const noexcept { return frames_queued_max_; }
  void count_callback() noexcept { ++callbacks_; }
  void make_due(UserEnd& end) { due_.add(end); }
  void forget(UserEnd& end);

 private:
  struct Place {
    std::shared_ptr<UserEnd> end;
    std::uint32_t generation = 0;
  };
  [[nodiscard]] IoThread& next_thread();
  [[nodiscard]] std::unique_ptr<Channel> add(Command command, ChannelHandler& handler, std::string peer);
  [[nodiscard]] Key free_key();
  void kick();

  const NearSettings settings_;
  const std::uint32_t number_;  // number of I/O threads
  const std::function<void()> wake_user_;
  const std::uint32_t frames_queued_max_;
  turn::Alarm alarm_;    // rung after an event was put
  std::mutex starting_;  // guards the start of threads_, which lend() reads from any thread
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::size_t next_ = 0;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;  // places without an end
  turn::DueList<std::shared_ptr<UserEnd>, &UserEnd::due_> due_;
  std::size_t callbacks_ = 0;
};

}  // namespace tributary::transport::io_threads

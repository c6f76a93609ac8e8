#pragma once
// The turns of one thread over one transport: the loop of poll(), which is the same in every transport.
//
// A poll() is a loop of looks. A look takes frames and events that have come, without waiting, and gives each
// connection that is due a bounded turn. Between two looks the thread spins, if SpinEstimate expects from the last
// waits that this pays, or it sleeps until an event comes or a deadline is over. The loop ends with the first look that
// has run a callback, or when the caller's time is over. Calls that other threads post run within a look, and end a
// sleep.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "transport/turn/mailbox.h"
#include "transport/turn/spin_estimate.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::turn {

/// The result of a look.
struct Looked {
  TimePoint at;       // time at the end of the look
  bool some = false;  // an event has come, or work is left: the thread must not offer its core
};

/// Marks that a call is running, which must not be entered a second time.
class Entered {
 public:
  explicit Entered(bool& flag) noexcept : flag_(flag) {
    TRIBUTARY_ASSERT(!flag, "a call is entered that runs already");
    flag_ = true;
  }
  ~Entered() { flag_ = false; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  bool& flag_;
};

/// `Core` derives from Engine<Core> and has these members, which may be private with the engine as a friend:
///   void begin_poll(bool waits)           before the loop; does the whole work of a poll() that does not wait
///   void end_poll()                       after it; optional
///   bool idle() const                     no work is left: the thread may sleep
///   Looked look(bool spins)               one look; `spins`: another look follows soon
///   Looked sleep(TimePoint now, TimePoint until)   sleeps, then looks
///   TimePoint time() const                the clock that measures the waits
///   void wake() noexcept                  any thread: ends the sleep, or the next one
template <class Core>
class Engine {
 public:
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Implements Transport::poll(). Inside its own callbacks it has no effect.
  std::size_t poll(Duration wait) {
    if (polling_ || ended_) return 0;
    const Entered polling(polling_);
    callbacks_ = 0;
    const bool waits = wait > Duration::zero();
    core().begin_poll(waits);
    if (waits && callbacks_ == 0) wait_for_work(std::min(wait, kWaitMax));
    if constexpr (requires(Core& c) { c.end_poll(); }) core().end_poll();
    return callbacks_;
  }
  /// Implements Transport::post().
  void post(std::function<void()> call) {
    if (calls_.post(std::move(call))) core().wake();
  }
  /// Counts a callback: poll() returns after the look that made it.
  void count_callback() noexcept { ++callbacks_; }

 protected:
  ~Engine() = default;

  void run_posted() {
    calls_.take([this](const std::function<void()>& call) {
      count_callback();
      call();
    });
  }
  /// Counts callbacks that other code has run.
  void count_callbacks(std::size_t more) noexcept { callbacks_ += more; }
  /// From here on poll() has no effect.
  void end() noexcept { ended_ = true; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] bool has_posted() const noexcept { return calls_.has_some(); }
  [[nodiscard]] Mailbox<std::function<void()>>& calls() noexcept { return calls_; }

 private:
  friend Core;  // only Core may derive from Engine<Core>
  /// `busy_poll`, `spin_max`: as in TcpSettings. `looks_per_offer`: number of looks after which the thread offers its
  /// core to other threads.
  Engine(Duration busy_poll, Duration spin_max, std::uint32_t looks_per_offer = kLooksPerOffer) noexcept
      : busy_poll_(busy_poll), spin_estimate_(spin_max, looks_per_offer) {}

  static constexpr Duration kWaitMax = std::chrono::hours(1);  // a wait "for ever" does not overflow the clock

  [[nodiscard]] Core& core() noexcept { return static_cast<Core&>(*this); }

  void wait_for_work(Duration wait) {
    const TimePoint started = core().time();
    const TimePoint deadline = started + wait;
    const bool adaptive = busy_poll_ <= Duration::zero();
    spin_estimate_.begin(started);
    for (TimePoint now = started;;) {
      if (callbacks_ != 0 || ended_ || now >= deadline) {
        if (adaptive) spin_estimate_.end(now, callbacks_ == 0);
        return;
      }
      const bool spins = adaptive ? spin_estimate_.stays_awake(now) : now - started < busy_poll_;
      const bool sleeps = !spins && core().idle();
      if (sleeps) spin_estimate_.sleeps();
      const Looked looked = sleeps ? core().sleep(now, deadline) : core().look(spins);
      now = looked.at;
      if (spins && adaptive && callbacks_ == 0 && !looked.some) {
        spin_estimate_.offer_core(now, [this] { return core().time(); });
      }
    }
  }

  const Duration busy_poll_;
  SpinEstimate spin_estimate_;
  Mailbox<std::function<void()>> calls_;
  std::size_t callbacks_ = 0;  // callbacks in this poll()
  bool polling_ = false;
  bool ended_ = false;
};

}  // namespace tributary::transport::turn

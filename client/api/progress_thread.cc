#include "client/api/progress_thread.h"

#include <pthread.h>
#include <signal.h>

#include <exception>

#include "client/api/log.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

// How sharp time-outs are, and how often an idle process is woken.
constexpr transport::Duration kTickBusy = 4ms;
constexpr transport::Duration kTickIdle = 25ms;
// For the last words to other ranks: they are a few bytes each, so only a peer that does not read costs so long.
constexpr transport::Duration kFlushLimit = 200ms;

/// The process's signals are its own threads' business.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

ProgressThread::ProgressThread(ProgressParts parts, Events events)
    : parts_(std::move(parts)),
      events_(std::move(events)),
      transport_(parts_.meeting ? &parts_.meeting->transport() : parts_.transport.get()) {
  const SignalsBlocked blocked;  // inherited by the new thread
  thread_ = std::thread([this] { run(); });
}

ProgressThread::~ProgressThread() {
  stop();
}

bool ProgressThread::submit(Call call) {
  std::lock_guard lock(mutex_);
  if (over_) return false;
  calls_.push_back(std::move(call));
  if (!woken_) {
    woken_ = true;
    transport_->post([this] { run_calls(); });
  }
  return true;
}

void ProgressThread::run_calls() {
  std::vector<Call> calls;
  {
    std::lock_guard lock(mutex_);
    woken_ = false;
    calls.swap(calls_);
  }
  for (Call& call : calls) call(*communicator_);
}

void ProgressThread::stop() {
  std::call_once(stopped_, [this] {
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
      if (!over_) transport_->post([] {});  // wakes poll()
    }
    thread_.join();
  });
}

void ProgressThread::run() {
  pthread_setname_np(pthread_self(), "tributary");
  Error why{Errc::aborted, "the communicator was destroyed or aborted while this was outstanding"};
  try {
    drive();
  } catch (const std::exception& e) {
    why = {Errc::exhausted, std::string("the communicator has ended by an exception: ") + e.what()};
    log(LogLevel::error, "tributary: rank " + std::to_string(parts_.settings.rank) + ": " + why.message);
  }
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    calls_.clear();
  }
  communicator_.reset();
  parts_.service.reset();
  parts_.meeting.reset();
  parts_.transport.reset();
  events_.over(why);
}

void ProgressThread::drive() {
  communicator_ = std::make_unique<Communicator>(*transport_, parts_.service.get(), parts_.settings);
  if (parts_.meeting) parts_.meeting->deliver_to(*communicator_);
  communicator_->on_path_change = [this](const std::string& line) { tell_path(line); };
  bool ready = false;
  communicator_->start([&](const Status& status) {
    ready = true;
    events_.ready(status);
  });
  transport::TimePoint next_tick{};
  while (!stopping_.load(std::memory_order_relaxed)) {
    const transport::TimePoint now = transport_->now();
    if (now >= next_tick) {
      communicator_->tick(now);
      tell_failure();
      next_tick = now + (ready && communicator_->idle() ? kTickIdle : kTickBusy);
    }
    transport_->poll(next_tick - now);
  }
  flush();
}

void ProgressThread::flush() {
  const transport::TimePoint limit = transport_->now() + kFlushLimit;
  for (int quiet = 0; quiet < 2 && transport_->now() < limit;) quiet = transport_->poll(1ms) == 0 ? quiet + 1 : 0;
}

// One line a communicator at info, not one a rank.
void ProgressThread::tell_path(const std::string& line) const {
  const LogLevel level = parts_.settings.rank == 0 ? LogLevel::info : LogLevel::debug;
  if (logs(level)) log(level, line + ", transport " + parts_.transport_name);
}

void ProgressThread::tell_failure() {
  if (failure_told_ || !communicator_->error()) return;
  failure_told_ = true;
  const Error& error = *communicator_->error();
  const LogLevel level = parts_.settings.rank == 0 && error.code != Errc::aborted ? LogLevel::error : LogLevel::debug;
  if (!logs(level)) return;
  log(level, "tributary: rank " + std::to_string(parts_.settings.rank) + " of " +
                 std::to_string(parts_.settings.nranks) + ": the communicator has failed (" +
                 std::string(to_string(error.code)) + "): " + error.message);
}

}  // namespace tributary::client

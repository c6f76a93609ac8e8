#include "client/api/progress_thread.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "client/api/flight_report.h"
#include "client/api/log.h"
#include "client/communicator/path_report.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"
#include "tributary/transport/shm.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

// The periods of ticks: they limit the precision of time-outs, and say how often an idle process wakes up.
constexpr transport::Duration kTickBusy = 4ms;
constexpr transport::Duration kTickIdle = 25ms;
// The limit for the last messages to other ranks. Each message has a few bytes, so only a peer that does not read takes
// so long.
constexpr transport::Duration kFlushLimit = 200ms;
// The period in which a parked thread looks whether callers still drive. It uses the shorter period if callers have
// left an operation for which no caller waits. Else the period doubles each time: with more ranks than cores, each look
// takes the core from a rank that works.
constexpr transport::Duration kParkPeriodMin = 250us;
constexpr transport::Duration kParkPeriodMax = 4ms;
// The time for which the thread expects another caller after the last caller. Meanwhile messages of other ranks wait in
// the sockets; this delays only control messages.
constexpr transport::Duration kLinger = 10ms;

}  // namespace

ProgressThread::ProgressThread(ProgressParts parts, Events events)
    : parts_(std::move(parts)),
      events_(std::move(events)),
      transport_(parts_.meeting ? &parts_.meeting->transport() : parts_.transport.get()),
      statistics_(parts_.statistics_folder) {
  parts_.settings.local_left_alone = [this] { attend_to_local(); };
  const transport::BlockedSignals blocked;  // the new thread inherits them
  thread_ = std::thread([this] { run(); });
}

ProgressThread::~ProgressThread() {
  stop();
}

// Runs `work` on the caller's thread. It returns true if the caller comes back at once. If it throws, the progress
// thread ends the communicator, as if it had driven itself.
template <class Work>
void ProgressThread::as_caller(Work work) {
  bool comes_back = false;
  try {
    comes_back = work();
  } catch (...) {
    broken_ = std::current_exception();
  }
  leave_seat(comes_back);
}

void ProgressThread::leave_seat(bool comes_back) {
  const bool broken = broken_ != nullptr;
  const bool unfinished = !comes_back && communicator_ && !communicator_->idle();
  unfinished_.store(unfinished);
  seat_.leave();
  if (broken || sleepers_.load() > 0) {
    recall();
  } else if (unfinished) {
    hurry();
  }
}

bool ProgressThread::submit(Call call, Next next) {
  if (next != Next::large && seat_.try_take(Driver::caller) == Driver::nobody) {
    as_caller([&] {
      if (!broken_) {  // the end of the communicator completes all calls
        run_calls();   // calls that were submitted before
        call(*communicator_);
        if (next == Next::leave) turn(transport_->now());  // send what the call has queued
      }
      return next == Next::wait;
    });
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    calls_.push_back(std::move(call));
    has_calls_.store(true);
    if (!woken_) {
      woken_ = true;
      transport_->post([this] { run_calls(); });
    }
  }
  if (parked_.load()) recall();
  return true;
}

bool ProgressThread::wait(Request& request, std::optional<transport::TimePoint> deadline, bool comes_back) {
  while (!request.done() && !stopping_.load(std::memory_order_relaxed)) {
    callers_.fetch_add(1);
    const Driver driver = seat_.try_take(Driver::caller);
    if (driver == Driver::nobody) {
      as_caller([&] {
        drive_for(request, deadline);
        return comes_back && !request.done();
      });
      callers_.fetch_sub(1);
      break;
    }
    if (driver == Driver::thread) {
      wake_driver();
      seat_.wait_while(Driver::thread, deadline.value_or(transport::TimePoint::max()));
      callers_.fetch_sub(1);
      if (seat_.closed() || (deadline && transport::Clock::now() >= *deadline)) break;
      continue;
    }
    callers_.fetch_sub(1);
    sleepers_.fetch_add(1);  // before driver() is read: see leave_seat()
    if (seat_.driver() == Driver::caller) static_cast<void>(request.wait(deadline));
    sleepers_.fetch_sub(1);
    if (deadline && transport::Clock::now() >= *deadline) break;
  }
  return request.wait(deadline);
}

void ProgressThread::drive_for(Request& request, const std::optional<transport::TimePoint>& deadline) {
  const transport::TimePoint until = deadline.value_or(transport::TimePoint::max());
  while (!broken_ && !request.done() && !stopping_.load(std::memory_order_relaxed)) {
    if (deadline && transport_->now() >= until) break;
    turn(until);
  }
}

void ProgressThread::help() {
  if (seat_.try_take(Driver::caller) == Driver::nobody)
    as_caller([this] {
      if (!broken_) turn(transport_->now());
      return false;
    });
}

void ProgressThread::wake_driver() {
  const std::lock_guard lock(mutex_);
  if (!over_) transport_->post([] {});
}

// Makes the driver look at local calls. A thread that attends to these calls already needs no message.
void ProgressThread::attend_to_local() {
  if (local_care_.attends()) return;
  wake_driver();
  hurry();
}

/// Wakes the thread if it is parked for a long period, so that it looks soon.
void ProgressThread::hurry() {
  if (!patient_.load()) return;
  {
    const std::lock_guard lock(park_mutex_);
    hurried_ = true;
  }
  park_changed_.notify_one();
}

void ProgressThread::recall() {
  {
    const std::lock_guard lock(park_mutex_);
    recalled_ = true;
  }
  park_changed_.notify_one();
}

std::unique_ptr<transport::KeptMemory> ProgressThread::keep_registered(std::span<const std::byte> memory) {
  std::lock_guard lock(mutex_);
  return over_ ? nullptr : transport_->keep_registered(memory);
}

std::unique_ptr<transport::KeptMemory> ProgressThread::lend(const std::byte* address, transport::SharedRange range) {
  const std::lock_guard lock(mutex_);
  auto* const lender = over_ ? nullptr : dynamic_cast<transport::MemoryLender*>(transport_);
  return lender != nullptr ? lender->lend(address, std::move(range)) : nullptr;
}

void ProgressThread::run_calls() {
  if (!has_calls_.load()) return;
  std::vector<Call> calls;
  {
    std::lock_guard lock(mutex_);
    has_calls_.store(false);
    woken_ = false;
    calls.swap(calls_);
  }
  TRIBUTARY_ASSERT(calls.empty() || communicator_, "{} calls run without a communicator", calls.size());
  for (Call& call : calls) call(*communicator_);
}

void ProgressThread::stop() {
  std::call_once(stopped_, [this] {
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
      if (!over_) transport_->post([] {});  // wake poll()
    }
    recall();
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
  seat_.close();  // the thread keeps the seat
  communicator_.reset();
  parts_.service.reset();
  parts_.meeting.reset();
  parts_.transport.reset();
  events_.over(why);
}

void ProgressThread::drive() {
  communicator_ = std::make_unique<Communicator>(*transport_, parts_.service.get(), parts_.settings);
  if (parts_.meeting) parts_.meeting->deliver_to(*communicator_);
  communicator_->on_path_change = [this](const std::string& line, bool unwanted) { tell_path(line, unwanted); };
  communicator_->on_second_way = [](const std::string& line, bool device_gone) {
    const LogLevel level = device_gone ? LogLevel::info : LogLevel::debug;
    if (logs(level)) log(level, line);
  };
  communicator_->on_late = [this](const std::string& line, bool late) {
    if (late) statistics_.note_late(line);
    const LogLevel level = late ? LogLevel::warn : LogLevel::info;
    if (logs(level)) log(level, line);
  };
  communicator_->start([&](const Status& status) {
    ready_ = true;
    local_care_.take(communicator_->local());
    events_.ready(status, communicator_->local());
  });
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (callers_.load() > 0) let_callers_drive();
    if (broken_) std::rethrow_exception(std::exchange(broken_, nullptr));
    turn(transport::TimePoint::max());
  }
  flush();
  keep_flight_record();
  keep_statistics();
  tell_end();
}

/// Does one round: does the work that is due, then handles what arrives until the time `until`.
void ProgressThread::turn(transport::TimePoint until) {
  const transport::TimePoint now = transport_->now();
  if (now >= next_tick_) {
    communicator_->tick(now);
    tell_failure();
    next_tick_ = now + (ready_ && communicator_->idle() ? kTickIdle : kTickBusy);
  }
  transport_->poll(communicator_->attend(now, local_care_.turn(now, std::min(next_tick_, until) - now)));
  turns_.fetch_add(1, std::memory_order_relaxed);
}

void ProgressThread::let_callers_drive() {
  park_period_ = kParkPeriodMin;
  seat_.leave();
  do {
    park();
  } while (!take_over());
}

void ProgressThread::park() {
  std::unique_lock lock(park_mutex_);
  parked_.store(true);
  // The accesses are sequentially consistent, as in leave_seat() and in a thread that posts a local call: at
  // least one of the two threads sees the other thread's write.
  patient_.store(park_period_ > kParkPeriodMin);
  if (unfinished_.load() || local_care_.neglected()) park_period_ = kParkPeriodMin;
  if (park_changed_.wait_for(lock, park_period_, [this] { return recalled_ || hurried_; })) {
    park_period_ = kParkPeriodMin;
  }
  hurried_ = false;
  patient_.store(false);
  parked_.store(false);
}

bool ProgressThread::take_over() {
  bool recalled = false;
  {
    const std::lock_guard lock(park_mutex_);
    recalled = std::exchange(recalled_, false);
  }
  const bool must = recalled || stopping_.load();
  const std::uint64_t turns = turns_.load(std::memory_order_relaxed);
  const transport::TimePoint now = transport::Clock::now();
  if (turns != turns_seen_) {
    turns_seen_ = turns;
    driven_at_ = now;
    park_period_ = std::min(park_period_ * 2, kParkPeriodMax);
    if (!must) return false;
  }
  if (callers_.load() > 0 && !stopping_.load()) return false;  // the caller that drives also runs the queued calls
  const bool needed = unfinished_.load(std::memory_order_relaxed) || local_care_.neglected();
  if (!must && !needed && now - driven_at_ < kLinger) return false;
  return seat_.try_take(Driver::thread) == Driver::nobody;
}

void ProgressThread::flush() {
  const transport::TimePoint limit = transport_->now() + kFlushLimit;
  for (int quiet = 0; quiet < 2 && transport_->now() < limit;) quiet = transport_->poll(1ms) == 0 ? quiet + 1 : 0;
}

// Logs a line about the path: rank 0 at info, other ranks at debug, so that a communicator logs one line in all.
void ProgressThread::tell_path(const std::string& line, bool unwanted) const {
  const LogLevel level = parts_.settings.rank != 0 ? LogLevel::debug : unwanted ? LogLevel::warn : LogLevel::info;
  if (logs(level)) log(level, line + ", transport " + parts_.transport_name);
}

void ProgressThread::tell_end() const {
  const CommunicatorInfo info = communicator_->info();
  const CommunicatorSettings& settings = parts_.settings;
  const LogLevel level = settings.rank == 0 && info.operations > 0 ? LogLevel::info : LogLevel::debug;
  if (!logs(level)) return;
  log(level, "tributary: rank " + std::to_string(settings.rank) + " of " + std::to_string(settings.nranks) + ": " +
                 end_line(settings, info));
}

// Writes the file of a failed communicator, once. In shared memory the calls fail before the communicator does.
void ProgressThread::keep_flight_record() {
  const auto& record = parts_.settings.flight_record;
  if (flight_kept_ || !record || parts_.flight_folder.empty() || record->snapshot().failure.empty()) return;
  flight_kept_ = true;
  const auto path = write_flight_file(parts_.flight_folder, record);
  const LogLevel level = path ? LogLevel::debug : LogLevel::warn;
  if (logs(level))
    log(level, "tributary: rank " + std::to_string(parts_.settings.rank) + ": " +
                   (path ? "the flight record is in " + *path : path.error().message));
}

void ProgressThread::keep_statistics() const {
  const CommunicatorInfo info = communicator_->info();
  const auto& record = parts_.settings.flight_record;
  const bool unused = info.operations > 0 && leaves_trees_unused(parts_.settings, info);
  if (record && unused) record->noted(Reason::trees_not_chosen);
  const auto path = statistics_.write(parts_.settings, info);
  if (path && path->empty()) return;
  const LogLevel level = path ? LogLevel::debug : LogLevel::warn;
  if (logs(level))
    log(level, "tributary: rank " + std::to_string(parts_.settings.rank) + ": " +
                   (path ? "the statistics are in " + *path : path.error().message));
}

void ProgressThread::tell_failure() {
  if (failure_told_ || !communicator_->error()) return;
  failure_told_ = true;
  keep_flight_record();
  const Error& error = *communicator_->error();
  const LogLevel level = parts_.settings.rank == 0 && error.code != Errc::aborted ? LogLevel::error : LogLevel::debug;
  if (!logs(level)) return;
  log(level, "tributary: rank " + std::to_string(parts_.settings.rank) + " of " +
                 std::to_string(parts_.settings.nranks) + ": the communicator has failed (" +
                 std::string(to_string(error.code)) + "): " + error.message);
}

}  // namespace tributary::client

#include "transport/io_threads/io_thread.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::transport::io_threads {

using namespace std::chrono_literals;

namespace {
constexpr std::size_t kRingItems = 2048;  // more than the frames that a lane's window or a share has under way
constexpr Duration kSleepMax = 1h;
constexpr Duration kFlushLook = 5ms;       // interval between looks for the end of a flush
constexpr Duration kFullLook = 50us;       // interval while events find no room: the user's thread is far behind
constexpr std::uint32_t kSpinsMax = 2000;  // looks for the end of a close before the user's thread sleeps
}  // namespace

IoThread::IoThread(const NearSettings& settings, std::uint32_t number, turn::Alarm& events_alarm,
                   std::function<void()> wake_user)
    : inner_(std::make_unique<NearTransport>(settings)),
      events_alarm_(events_alarm),
      wake_user_(std::move(wake_user)),
      commands_(kRingItems),
      events_(kRingItems) {
  const BlockedSignals blocked;  // the new thread inherits them
  thread_ = std::thread([this, number] { run(number); });
}

void IoThread::kick() {
  if (stopped()) return;
  commands_.flush();
  if (!std::exchange(dirty_, commands_.keeps_some())) return;
  if (alarm_.ring()) inner_->post([] {});
}

void IoThread::close_and_wait(IoEnd& end) {
  if (stopped()) return;
  const std::uint64_t ticket = ++tickets_;
  put({.kind = Command::Kind::close, .end = &end, .number = ticket});
  for (std::uint32_t i = 0;; ++i) {
    kick();
    const std::uint64_t seen = confirmed_.load(std::memory_order_acquire);  // pairs with carry_out()
    if (seen >= ticket) return;
    if (i >= kSpinsMax && !commands_.keeps_some()) confirmed_.wait(seen, std::memory_order_acquire);
  }
}

void IoThread::stop() {
  if (stopped()) return;
  stopping_.store(true, std::memory_order_release);
  inner_->post([] {});
  thread_.join();
}

void IoThread::report(Event event) {
  events_.put(std::move(event));
  if (events_alarm_.ring()) wake_user_();
}

Duration IoThread::longest_sleep() const noexcept {
  if (events_.keeps_some()) return kFullLook;
  return flushing_.empty() ? kSleepMax : kFlushLook;
}

void IoThread::run(std::uint32_t number) {
  ::pthread_setname_np(::pthread_self(), ("tributary-io" + std::to_string(number)).c_str());
  while (!stopping_.load(std::memory_order_acquire)) {
    static_cast<void>(alarm_.take());
    const bool some = commands_.take([this](Command& command) { carry_out(command); }) > 0;
    const bool may_sleep = !some && alarm_.fall_asleep();
    inner_->poll(may_sleep ? longest_sleep() : Duration::zero());
    alarm_.wake_up();
    if (!flushing_.empty()) look_at_flushes();
    if (events_.keeps_some()) {
      events_.flush();
      if (events_alarm_.ring()) wake_user_();
    }
  }
  flushing_.clear();
  ends_.clear();
}

void IoThread::carry_out(Command& command) {
  switch (command.kind) {
    case Command::Kind::connect: {
      IoEnd& end = *command.end;
      adopt_end(std::move(command.details->end));
      return end.use(inner_->connect(command.details->to, end, command.details->limit));
    }
    case Command::Kind::adopt: {
      IoEnd& end = *command.end;
      adopt_end(std::move(command.details->end));
      end.use(inner_->adopt(std::move(command.details->open), end));
      return end.report_open();
    }
    case Command::Kind::destroy:
      return destroy(*command.end);
    case Command::Kind::close:
      command.end->carry_out(command);
      if (command.number == 0) return;
      confirmed_.store(command.number, std::memory_order_release);
      return confirmed_.notify_one();
    case Command::Kind::flush:
      flushing_.push_back(command.end);
      return command.end->carry_out(command);
    default:
      return command.end->carry_out(command);
  }
}

void IoThread::adopt_end(std::unique_ptr<IoEnd> end) {
  end->number = ends_.size();
  ends_.push_back(std::move(end));
}

void IoThread::destroy(IoEnd& end) {
  TRIBUTARY_ASSERT(end.number < ends_.size() && ends_[end.number].get() == &end,
                   "a channel is destroyed twice; {} channels are left", ends_.size());
  std::erase(flushing_, &end);
  const std::size_t number = end.number;
  std::swap(ends_[number], ends_.back());
  ends_[number]->number = number;
  ends_.pop_back();
}

void IoThread::look_at_flushes() {
  std::erase_if(flushing_, [](IoEnd* end) { return !end->still_flushes(); });
}

}  // namespace tributary::transport::io_threads

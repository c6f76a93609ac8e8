#include "client/plugins/nccl/collective/service.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tributary/transport/blocked_signals.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

struct Service::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool there = false;
  bool asking = false;
  std::string reason;

  void ask() {
    const bool answered = tributary_service_check(nullptr) == TRIBUTARY_OK;
    const std::string why = answered ? std::string() : tributary_last_error(nullptr);
    const std::lock_guard lock(mutex);
    there = answered;
    reason = why;
    asking = false;
    changed.notify_all();
  }
};

namespace {

// The longest wait, at the process's exit, for the manager's answer. The library gives up a request after five seconds.
constexpr std::chrono::seconds kAnswerLimit{6};

}  // namespace

Service::Service() : state_(std::make_shared<State>()) {}

// Returns the only object. It is never destroyed, because its thread may run longer than main().
Service& Service::process() {
  static auto* const one = new Service;
  return *one;
}

std::string Service::why_not(std::chrono::milliseconds limit) {
  // Wait for the thread that asks the manager before the process ends: it would use objects while they are destroyed.
  static const int registered = std::atexit([] {
    State& state = *process().state_;
    std::unique_lock lock(state.mutex);
    state.changed.wait_for(lock, kAnswerLimit, [&] { return !state.asking; });
  });
  static_cast<void>(registered);
  std::unique_lock lock(state_->mutex);
  if (state_->there) return {};
  if (!state_->asking) {
    state_->asking = true;
    const transport::BlockedSignals blocked;
    std::thread([state = state_] { state->ask(); }).detach();
  }
  if (!state_->changed.wait_for(lock, limit, [&] { return !state_->asking; })) {
    return "the manager has not answered within " + std::to_string(limit.count()) + " ms";
  }
  return state_->there ? std::string() : state_->reason;
}

}  // namespace tributary::nccl

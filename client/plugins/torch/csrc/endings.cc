#include "endings.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "error.h"

namespace tributary::torch {

struct Endings::State {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t under_way = 0;
};

struct Endings::Followed {
  Endings& endings;
  const char* title;
  Then then;
};

Endings::Endings() : state_(std::make_unique<State>()) {}

Endings::~Endings() {
  if (!made_here_) static_cast<void>(state_.release());  // a thread that this forked child lacks may hold the lock
}

void Endings::follow(tributary_request* request, const char* title, Then then) {
  begin();
  // The library may call this on any thread, and the call must not block. So this object's thread runs `then`.
  const auto done = [](void* context, const tributary_outcome* outcome) noexcept {
    const std::unique_ptr<Followed> followed(static_cast<Followed*>(context));
    std::string error;
    if (outcome->status != TRIBUTARY_OK) error = sentence(followed->title, outcome->status, outcome->sentence);
    followed->endings.post(std::move(followed->then), std::move(error), outcome->peer);
  };
  auto followed = std::make_unique<Followed>(Followed{*this, title, std::move(then)});
  const tributary_status status = tributary_when_done(request, done, followed.get());
  if (status == TRIBUTARY_OK) {
    static_cast<void>(followed.release());  // done() now owns the object
  } else {
    post(std::move(followed->then), sentence(title, status), -1);
  }
}

void Endings::end(Then then, std::string error) {
  begin();
  post(std::move(then), std::move(error), -1);
}

void Endings::begin() {
  const std::lock_guard lock(state_->mutex);
  ++state_->under_way;
}

void Endings::post(Then then, std::string error, int peer) {
  thread_.post([state = state_.get(), then = std::move(then), error = std::move(error), peer] {
    then(error, peer);
    const std::lock_guard lock(state->mutex);
    --state->under_way;
    state->ended.notify_all();
  });
}

void Endings::drain() {
  {
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [this] { return state_->under_way == 0; });
  }
  thread_.drain();  // also waits until the objects of the last task are destroyed
}

}  // namespace tributary::torch

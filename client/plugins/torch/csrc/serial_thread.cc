#include "serial_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace tributary::torch {

struct SerialThread::State {
  void run();

  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable drained;
  std::deque<std::function<void()>> tasks;
  bool running = false;  // a task has left the queue and has not returned
  bool stop = false;
  std::thread thread;
};

SerialThread::SerialThread() : state_(std::make_unique<State>()) {}

SerialThread::~SerialThread() {
  if (!made_here_) {
    static_cast<void>(state_.release());  // a forked child: the lock may be held, and the thread cannot be joined
    return;
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
}

void SerialThread::post(std::function<void()> task) {
  if (!made_here_) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
    if (!state_->thread.joinable()) state_->thread = std::thread([state = state_.get()] { state->run(); });
  }
  state_->wake.notify_one();
}

bool SerialThread::idle() {
  if (!made_here_) return true;
  std::lock_guard lock(state_->mutex);
  return state_->tasks.empty() && !state_->running;
}

void SerialThread::drain() {
  if (!made_here_) return;
  std::unique_lock lock(state_->mutex);
  state_->drained.wait(lock, [this] { return state_->tasks.empty() && !state_->running; });
}

void SerialThread::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return stop || !tasks.empty(); });
    if (tasks.empty()) return;
    auto task = std::move(tasks.front());
    tasks.pop_front();
    running = true;
    lock.unlock();
    task();
    task = nullptr;  // the task may hold tensors; destroy them before drain() returns
    lock.lock();
    running = false;
    if (tasks.empty()) drained.notify_all();
  }
}

}  // namespace tributary::torch

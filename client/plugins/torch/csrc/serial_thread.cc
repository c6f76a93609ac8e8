#include "serial_thread.h"

namespace tributary_torch {

SerialThread::~SerialThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SerialThread::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  wake_.notify_one();
}

bool SerialThread::idle() {
  std::lock_guard lock(mutex_);
  return tasks_.empty() && !running_;
}

void SerialThread::drain() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return tasks_.empty() && !running_; });
}

void SerialThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    lock.unlock();
    task();
    task = nullptr;  // what it holds, tensors perhaps, must not outlive drain()
    lock.lock();
    running_ = false;
    if (tasks_.empty()) drained_.notify_all();
  }
}

}  // namespace tributary_torch

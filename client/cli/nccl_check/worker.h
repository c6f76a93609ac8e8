#pragma once
// A thread that runs calls one after the other: NCCL's service thread, or NCCL's progress thread.
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace tributary::cli::nccl_check {

class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    post([this] { ended_ = true; }).wait();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Queues `call`; the future throws the exception of `call`.
  std::future<void> post(std::function<void()> call) {
    std::packaged_task<void()> task(std::move(call));
    auto future = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    return future;
  }
  /// Runs `call`, and waits until it has ended.
  void run(std::function<void()> call) { post(std::move(call)).get(); }

 private:
  void run() {
    while (!ended_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool ended_ = false;  // only this thread uses it
  std::thread thread_;  // last member: it uses the other members
};

}  // namespace tributary::cli::nccl_check

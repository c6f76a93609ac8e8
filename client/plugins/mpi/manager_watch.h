#pragma once
// Looks for the return of a manager that has not answered.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace tributary::mpi {

/// Asks again and again on a thread of its own, until an answer comes: a question may take seconds, and no call of the
/// program should wait for it.
class ManagerWatch {
 public:
  static constexpr std::chrono::milliseconds kPauseMin{1'000};
  static constexpr std::chrono::milliseconds kPauseMax{16'000};

  /// `answers` asks once. The pauses between two questions double from `pause_min` to kPauseMax.
  explicit ManagerWatch(std::function<bool()> answers, std::chrono::milliseconds pause_min = kPauseMin)
      : answers_(std::move(answers)), pause_min_(pause_min) {}
  ManagerWatch(const ManagerWatch&) = delete;
  ManagerWatch& operator=(const ManagerWatch&) = delete;
  ~ManagerWatch() { end(); }

  /// Starts to ask. Returns false if it does so already.
  bool begin();
  /// Returns false from begin() to the first answer.
  [[nodiscard]] bool answered();
  /// Asks no more. Waits for the end of a question that is under way.
  void end();

 private:
  void ask(const std::stop_token& stop);

  const std::function<bool()> answers_;
  const std::chrono::milliseconds pause_min_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool asking_ = false;
  std::jthread thread_;  // ends soon after it has set asking_ to false
};

}  // namespace tributary::mpi

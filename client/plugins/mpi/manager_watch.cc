#include "client/plugins/mpi/manager_watch.h"

#include <signal.h>

#include <algorithm>

namespace tributary::mpi {

bool ManagerWatch::begin() {
  const std::lock_guard lock(mutex_);
  if (asking_) return false;
  asking_ = true;
  // Signals are for the program's own threads. A thread begins with the mask of the one that starts it.
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this](const std::stop_token& stop) { ask(stop); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

bool ManagerWatch::answered() {
  const std::lock_guard lock(mutex_);
  return !asking_;
}

void ManagerWatch::end() {
  std::jthread last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(thread_);
  }
  last = {};  // stops and joins, without the lock, which the thread takes
}

void ManagerWatch::ask(const std::stop_token& stop) {
  auto pause = pause_min_;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    lock.unlock();
    const bool answer = answers_();
    lock.lock();
    if (answer) break;
    pause = std::min(2 * pause, kPauseMax);
  }
  asking_ = false;
}

}  // namespace tributary::mpi

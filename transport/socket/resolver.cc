#include "transport/socket/resolver.h"

#include <utility>

#include "tributary/transport/blocked_signals.h"

namespace tributary::transport {

void Resolver::ask(Endpoint endpoint, Found found) {
  {
    const std::lock_guard lock(mutex_);
    questions_.push_back({std::move(endpoint), std::move(found)});
  }
  asked_.notify_one();
  if (thread_.joinable()) return;
  const BlockedSignals blocked;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Resolver::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  questions_.clear();
}

void Resolver::run(const std::stop_token& stop) {
  while (true) {
    Question question;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [this] { return !questions_.empty(); }) || stop.stop_requested()) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    auto addresses = look_up(question.endpoint);
    deliver_([found = std::move(question.found), addresses = std::move(addresses)]() mutable {
      found(std::move(addresses));
    });
  }
}

}  // namespace tributary::transport

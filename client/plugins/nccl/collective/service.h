#pragma once
// Asks in the background whether the manager answers.
#include <chrono>
#include <memory>
#include <string>

namespace tributary::nccl {

/// The process has one such object. Once a manager has answered, later communicators rely on this answer. If the
/// manager is away at that time, they begin on the fallback. Any thread may call it.
class Service {
 public:
  [[nodiscard]] static Service& process();

  /// Returns an empty text if the manager answers, otherwise the reason, after `limit` at the latest. An unanswered
  /// question continues in the background, and a later call gets its answer.
  [[nodiscard]] std::string why_not(std::chrono::milliseconds limit);

 private:
  struct State;
  Service();

  const std::shared_ptr<State> state_;
};

}  // namespace tributary::nccl

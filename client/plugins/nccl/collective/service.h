#pragma once
// Finds out, in the background, whether there is a manager.
#include <chrono>
#include <memory>
#include <string>

namespace tributary::nccl {

/// The process has one such object. Once a manager has answered, later communicators rely on it. While it is away, they
/// begin between the ranks. Any thread.
class Service {
 public:
  [[nodiscard]] static Service& process();

  /// Returns an empty text if the manager is there, else why not, after `limit` at the latest. A question that is
  /// unanswered then goes on, and a later call gets its answer.
  [[nodiscard]] std::string why_not(std::chrono::milliseconds limit);

 private:
  struct State;
  Service();

  const std::shared_ptr<State> state_;
};

}  // namespace tributary::nccl

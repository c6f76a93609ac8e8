#pragma once
// Asks, in the background, whether there is a manager.
#include <chrono>
#include <memory>
#include <string>

namespace tributary::nccl {

/// The process has one. Once there was a service, later communicators count on it: they begin between the ranks should
/// it be away for a while. Any thread.
class Service {
 public:
  [[nodiscard]] static Service& process();

  /// Empty: it is there. Else why not, after `limit` at the latest; a question that is still open then stays so, and
  /// a later call hears of its answer.
  [[nodiscard]] std::string why_not(std::chrono::milliseconds limit);

 private:
  struct State;
  Service();

  const std::shared_ptr<State> state_;
};

}  // namespace tributary::nccl

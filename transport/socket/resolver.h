#pragma once
// Looks names up on a thread of its own, because the system's resolver may block for any time.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "transport/socket/address.h"

namespace tributary::transport {

class Resolver {
 public:
  using Found = std::function<void(Result<std::vector<SocketAddress>>)>;
  /// A function that brings a call to the thread that gets the answers. Any thread may call it.
  using Deliver = std::function<void(std::function<void()>)>;

  /// The thread starts with the first look-up.
  explicit Resolver(Deliver deliver) : deliver_(std::move(deliver)) {}
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Looks a name up. A delivered call runs and destroys `found`. Answers come in the order of the questions.
  void ask(Endpoint endpoint, Found found);
  /// Waits for the look-up that is under way, and drops the look-ups that have not begun.
  void stop();

 private:
  struct Question {
    Endpoint endpoint;
    Found found;
  };
  void run(const std::stop_token& stop);

  Deliver deliver_;
  std::mutex mutex_;  // guards questions_
  std::condition_variable_any asked_;
  std::deque<Question> questions_;
  std::jthread thread_;  // declared last, because it uses the other members
};

}  // namespace tributary::transport

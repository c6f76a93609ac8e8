#pragma once
// The thread in which a rank meets the other ranks of its host: the calls of a meeting block.
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "client/collectives/local/meeting_place.h"

namespace tributary::client {

class LocalMeeting {
 public:
  using Outcome = Result<std::vector<std::unique_ptr<local::LocalGroup>>>;

  /// Runs `meet` in a thread of its own, and passes the outcome to `then` in this thread. The descriptor `stop` becomes
  /// readable when the meeting must end early.
  LocalMeeting(std::function<Outcome(int stop)> meet, std::function<void(Outcome)> then);
  LocalMeeting(const LocalMeeting&) = delete;
  LocalMeeting& operator=(const LocalMeeting&) = delete;
  /// Ends the meeting early, and waits until `then` has ended.
  ~LocalMeeting();

 private:
  local::FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace tributary::client

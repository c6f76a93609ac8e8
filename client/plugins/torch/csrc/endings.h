#pragma once

#include <functional>
#include <memory>
#include <string>

#include "process.h"
#include "serial_thread.h"
#include "tributary/tributary.h"

namespace tributary::torch {

/// Waits for requests that may end in any order: messages with tags, and receives from any rank. A waiting request
/// needs no thread. One thread calls their `then`, in the order in which the requests end.
class Endings {
 public:
  /// `error` is empty, or begins with `title`. `peer` is the other rank of a message that has ended well.
  using Then = std::function<void(const std::string& error, int peer)>;

  Endings();
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;
  ~Endings();

  /// Takes over the request. Calls `then` once, on this object's thread, when the request has ended.
  void follow(tributary_request* request, const char* title, Then then);
  /// Calls `then` in the same way, for an operation that could not be started.
  void end(Then then, std::string error);
  /// Returns when every followed request has ended and its `then` has returned.
  void drain();

 private:
  struct Followed;
  struct State;
  void begin();
  void post(Then then, std::string error, int peer);

  const MadeHere made_here_;
  std::unique_ptr<State> state_;
  SerialThread thread_;  // last member: its tasks use the other members
};

}  // namespace tributary::torch

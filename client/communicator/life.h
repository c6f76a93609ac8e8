#pragma once
// The life of a communicator, as one rank sees it.
//
//   meeting --all ranks are known--> met --first commit--> ready --finalize--> leaving --rank 0's word--> left
//      |                              |                      |                    |                         |
//      +--------- an error -----------+----------------------+--------------------+--> failing --drained--> failed
//      +--------- abort --------------+----------------------+--------------------+-------------------------+--> failed
//
// failing: the error is known, but results that are on their way may still arrive. failed: all calls have ended.
#include <cstdint>
#include <optional>
#include <string_view>

#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class Life {
 public:
  enum class State : std::uint8_t { meeting, met, ready, leaving, left, failing, failed };

  /// Notes that all ranks are known, so that this rank can connect to each of them.
  void meet() { enter(State::met); }
  /// Notes that operations may begin.
  void begin() { enter(State::ready); }
  /// Notes that this rank has told rank 0 that it is done.
  void leave() { enter(State::leaving); }
  /// Notes that all ranks are done.
  void end() { enter(State::left); }
  /// Makes the communicator fail with `error` at the time `at`, unless fail() is called before.
  void begin_failing(Error error, transport::TimePoint at);
  void fail(Error error);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// Returns whether meet() was called, in whatever state the communicator is now.
  [[nodiscard]] bool has_met() const noexcept { return met_; }
  /// Returns whether begin() was called, in whatever state the communicator is now.
  [[nodiscard]] bool has_begun() const noexcept { return begun_; }
  /// Returns whether no error has come.
  [[nodiscard]] bool well() const noexcept { return state_ < State::failing; }
  [[nodiscard]] bool leaving() const noexcept { return state_ == State::leaving || state_ == State::left; }
  [[nodiscard]] bool left() const noexcept { return state_ == State::left; }
  [[nodiscard]] bool failing() const noexcept { return state_ == State::failing; }
  [[nodiscard]] bool failed() const noexcept { return state_ == State::failed; }
  /// Returns, while failing, the error with which the communicator will fail.
  [[nodiscard]] const Error& pending() const noexcept { return *error_; }
  [[nodiscard]] bool fails_by(transport::TimePoint now) const noexcept { return failing() && now >= fail_at_; }
  /// Returns the error of a failed communicator; else none.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return failed() ? error_ : kNone; }
  /// Puts off the time of failure by `absence`, the time for which this process was away.
  void excuse(transport::Duration absence) noexcept {
    if (failing()) fail_at_ += absence;
  }

 private:
  static const std::optional<Error> kNone;
  void enter(State to);

  State state_ = State::meeting;
  bool met_ = false, begun_ = false;
  std::optional<Error> error_;
  transport::TimePoint fail_at_{};
};

[[nodiscard]] std::string_view to_string(Life::State state) noexcept;

}  // namespace tributary::client

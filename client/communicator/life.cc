#include "client/communicator/life.h"

#include <string>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {

namespace {

/// True if the picture in the header has an arrow from `from` to `to`.
bool is_drawn(Life::State from, Life::State to) noexcept {
  using enum Life::State;
  switch (to) {
    case met:
      return from == meeting;
    case ready:
      return from == met;
    case leaving:
      return from == ready;
    case left:
      return from == leaving;
    case failing:
      return from < left;
    case failed:
      return from != failed;
    case meeting:
      return false;
  }
  return false;
}

}  // namespace

const std::optional<Error> Life::kNone;

std::string_view to_string(Life::State state) noexcept {
  switch (state) {
    case Life::State::meeting:
      return "meeting";
    case Life::State::met:
      return "met";
    case Life::State::ready:
      return "ready";
    case Life::State::leaving:
      return "leaving";
    case Life::State::left:
      return "left";
    case Life::State::failing:
      return "failing";
    case Life::State::failed:
      return "failed";
  }
  return "unknown";
}

void Life::enter(State to) {
  TRIBUTARY_ASSERT(is_drawn(state_, to), "a communicator that is {} cannot be {}", to_string(state_), to_string(to));
  state_ = to;
  met_ = met_ || to == State::met;
  begun_ = begun_ || to == State::ready;
}

void Life::begin_failing(Error error, transport::TimePoint at) {
  enter(State::failing);
  error_ = std::move(error);
  fail_at_ = at;
}

void Life::fail(Error error) {
  enter(State::failed);
  error_ = std::move(error);
}

}  // namespace tributary::client

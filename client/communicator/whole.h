#pragma once
// The state that a communicator's parts share, and the calls they make on the whole.
#include <functional>
#include <memory>
#include <string>

#include "client/communicator/clock.h"
#include "client/communicator/life.h"
#include "client/communicator/settings.h"
#include "client/control/control_message.h"

namespace tributary::client {

/// The communicator as its parts see it.
class Whole {
 public:
  virtual ~Whole() = default;
  /// On rank 0 the message takes the way through the transport's queue, so that a handler never changes what its caller
  /// is walking through.
  virtual void tell_rank_0(ControlMessage message) = 0;
  /// Rank 0: to one rank, which may be rank 0 itself.
  virtual void tell(std::uint32_t rank, const ControlMessage& message) = 0;
  /// Ends all operations here soon; rank 0, or whoever told, sees to the other ranks.
  virtual void begin_failing(Error error) = 0;
  /// Ends all operations here now, and everywhere.
  virtual void abort(const std::string& reason) = 0;
  /// A line for the log: operations take another path.
  virtual void path_changed(const std::string& line) = 0;
  /// All that comes in begins with this.
  virtual void look_at_clock() = 0;
};

struct Shared {
  transport::Transport& transport;
  const CommunicatorSettings settings;
  Whole& whole;
  Clock clock{};
  Life life{};
  CommunicatorInfo info{};
  /// Calls that were posted to the transport and come too late find it false.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  [[nodiscard]] std::uint32_t rank() const noexcept { return settings.rank; }
  /// The number that people know a rank by.
  [[nodiscard]] std::uint32_t known_as(std::uint32_t rank) const noexcept {
    return settings.known_as.empty() ? rank : settings.known_as[rank];
  }
  [[nodiscard]] std::uint32_t known_as() const noexcept { return known_as(settings.rank); }
  /// The error's message to rank 0, which ends the communicator.
  [[nodiscard]] static ControlMessage abort_message(const Error& error) {
    return {.type = FrameType::abort, .value = static_cast<std::uint64_t>(error.code), .body = error.message};
  }
  /// "tributary: rank 3 of 8: "
  [[nodiscard]] std::string log_prefix() const {
    return "tributary: rank " + std::to_string(settings.rank) + " of " + std::to_string(settings.nranks) + ": ";
  }
};

}  // namespace tributary::client

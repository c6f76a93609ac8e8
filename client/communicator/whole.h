#pragma once
// The state that a communicator's parts share, and the calls that the parts make on the communicator.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/communicator/clock.h"
#include "client/communicator/life.h"
#include "client/communicator/settings.h"
#include "client/control/control_message.h"

namespace tributary::client {

/// The reason for another path: news from the manager or from rank 0, a move to better trees, or a lost tree.
enum class PathEvent : std::uint8_t { news, moves, lost };

/// The communicator as its parts see it.
class Whole {
 public:
  virtual ~Whole() = default;
  /// Sends a message to rank 0. On rank 0 itself the message passes through the transport's queue, so that a handler
  /// never changes a container over which its caller iterates.
  virtual void tell_rank_0(ControlMessage message) = 0;
  /// On rank 0: sends a message to one rank, which may be rank 0 itself.
  virtual void tell(std::uint32_t rank, const ControlMessage& message) = 0;
  /// Ends all operations of this rank soon. Rank 0, or the rank that reported the error, ends other ranks' operations.
  virtual void begin_failing(Error error) = 0;
  /// Ends all operations of this rank and of all other ranks now.
  virtual void abort(const std::string& reason) = 0;
  /// Logs the line, which says that operations take another path. `unwanted`: the ranks use no tree although no setting
  /// forbids trees.
  virtual void path_changed(const std::string& line, bool unwanted) = 0;
  /// Notes absences of this process. Every handler of an arriving frame calls this first.
  virtual void look_at_clock() = 0;
};

struct Shared {
  transport::Transport& transport;
  const CommunicatorSettings settings;
  Whole& whole;
  Clock clock{};
  Life life{};
  CommunicatorInfo info{};
  double staging_gbytes = 0;     // on rank 0: the measured rate of copies from and to a GPU (see tuning::Figures)
  bool looks_for_trees = false;  // rank 0 still waits for an answer of the manager or of a rank
  bool lack_told = false;        // the log has said, since the last trees, why there are no trees
  bool lack_warned = false;      // the log has warned once in this life that there are no trees
  bool use_told = false;         // the log has said that these trees have carried bytes
  /// False once the communicator is gone. Calls that were posted to the transport check this.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  [[nodiscard]] std::uint32_t rank() const noexcept { return settings.rank; }
  /// Notes in the flight record that a part of an operation has come to this rank.
  void part_came(std::uint64_t operation, transport::TimePoint at) const noexcept {
    if (const auto& record = settings.flight_record) record->came(operation, at);
  }
  /// Returns the number of `rank` in texts for people: the group of leaders names ranks by their numbers in the whole
  /// group.
  [[nodiscard]] std::uint32_t known_as(std::uint32_t rank) const noexcept {
    return settings.known_as.empty() ? rank : settings.known_as[rank];
  }
  [[nodiscard]] std::uint32_t known_as() const noexcept { return known_as(settings.rank); }
  /// Returns the message that reports an error to rank 0, so that rank 0 ends the communicator.
  [[nodiscard]] static ControlMessage abort_message(const Error& error) {
    return {.type = FrameType::abort, .value = static_cast<std::uint64_t>(error.code), .body = error.message};
  }
  /// Returns a prefix such as "tributary: rank 3 of 8: ".
  [[nodiscard]] std::string log_prefix() const {
    return "tributary: rank " + std::to_string(settings.rank) + " of " + std::to_string(settings.nranks) + ": ";
  }
};

}  // namespace tributary::client

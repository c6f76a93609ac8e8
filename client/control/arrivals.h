#pragma once
// The connections that a rank's listener accepted. Until they have proved that they are of the group they are in a
// waiting room (tributary/protocol/waiting_room.h); those that are refused get a moment for their last words; those
// that have proved it stay as long as their channel does, and count for nothing.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tributary/protocol/waiting_room.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class Arrival;
class ArrivalUser;

/// Since the start.
struct ArrivalCounts {
  std::uint64_t displaced = 0;  // closed because newer ones came, and all places were taken
  std::uint64_t late = 0;       // did not prove themselves in time
  std::uint64_t refused = 0;    // proved nothing, or something else
  [[nodiscard]] std::uint64_t sum() const noexcept { return displaced + late + refused; }
};

class Arrivals {
 public:
  /// So many strangers keep no rank out. Besides, all ranks may come to rank 0 at once.
  static constexpr std::size_t kStrangers = 512, kAtOnceMax = 4096;
  static constexpr transport::Duration kProofLimit = std::chrono::seconds(5);
  static constexpr transport::Duration kLastWordsLimit = std::chrono::seconds(1);

  explicit Arrivals(std::uint32_t nranks);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Challenges it. The one that must make room for it is gone at once.
  Arrival& enter(ArrivalUser& user, std::unique_ptr<transport::Channel> channel, transport::TimePoint now);
  /// From now on nothing closes it but its two sides: the other one may already count on it.
  void proved(WaitingRoom::Id id);
  /// Closes with `reason`, which is said only while few others are being refused. Its channel has no other owner yet.
  void refuse(WaitingRoom::Id id, const std::string& reason);
  void closed(WaitingRoom::Id id);

  void tick(transport::TimePoint now);
  /// Tells those that wait that their answer is known.
  void resume();
  /// So long was this process away: what it waits for could not come.
  void excuse(transport::Duration absence);

  [[nodiscard]] const ArrivalCounts& counts() const noexcept { return counts_; }
  /// Without proof, and refused ones with last words under way.
  [[nodiscard]] std::size_t unproved() const noexcept { return room_.size() + leaving_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return room_.places(); }

 private:
  void drop(WaitingRoom::Id id);

  WaitingRoom room_;
  WaitingRoom::Id next_ = 1;
  std::map<WaitingRoom::Id, std::unique_ptr<Arrival>> arrivals_;
  std::map<WaitingRoom::Id, transport::TimePoint> leaving_;  // refused; closed at the latest then
  std::vector<WaitingRoom::Id> closed_;                      // may be in a callback until the next tick
  transport::TimePoint now_{};
  ArrivalCounts counts_;
};

}  // namespace tributary::client

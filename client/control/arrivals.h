#pragma once
// The connections that a rank's listener accepted. A connection stays in a waiting room
// (tributary/protocol/waiting_room.h) until it has proved that it belongs to the group; a refused one gets a moment to
// deliver the refusal; a proved one stays as long as its channel does, and does not count towards the limits.
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

/// Counts since the start.
struct ArrivalCounts {
  std::uint64_t displaced = 0;  // closed because newer ones came, and all places were taken
  std::uint64_t late = 0;       // did not prove themselves in time
  std::uint64_t refused = 0;    // gave no proof, or a wrong one
  [[nodiscard]] std::uint64_t sum() const noexcept { return displaced + late + refused; }
};

class Arrivals {
 public:
  /// 512 strangers at a time keep no rank out. Besides them, all ranks may come to rank 0 at once.
  static constexpr std::size_t kStrangers = 512, kAtOnceMax = 4096;
  static constexpr transport::Duration kProofLimit = std::chrono::seconds(5);
  static constexpr transport::Duration kLastWordsLimit = std::chrono::seconds(1);

  explicit Arrivals(std::uint32_t nranks);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Challenges the connection. The stranger that must make room for it is closed at once.
  Arrival& enter(ArrivalUser& user, std::unique_ptr<transport::Channel> channel, transport::TimePoint now);
  /// Notes the proof: from now on only its two sides close the connection, because the other side may already rely on
  /// it.
  void proved(WaitingRoom::Id id);
  /// Closes the connection. Sends it `reason` only while few others are being refused. The caller gives up the channel.
  void refuse(WaitingRoom::Id id, const std::string& reason);
  void closed(WaitingRoom::Id id);

  void tick(transport::TimePoint now);
  /// Tells the waiting connections that their answer is known.
  void resume();
  /// Gives every waiting connection more time: this process was away for `absence`.
  void excuse(transport::Duration absence);

  [[nodiscard]] const ArrivalCounts& counts() const noexcept { return counts_; }
  /// Connections without proof, and refused ones whose refusal is on its way.
  [[nodiscard]] std::size_t unproved() const noexcept { return room_.size() + leaving_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return room_.places(); }

 private:
  void drop(WaitingRoom::Id id);

  WaitingRoom room_;
  WaitingRoom::Id next_ = 1;
  std::map<WaitingRoom::Id, std::unique_ptr<Arrival>> arrivals_;
  std::map<WaitingRoom::Id, transport::TimePoint> leaving_;  // refused; the time at which each is closed at the latest
  std::vector<WaitingRoom::Id> closed_;                      // kept until the next tick, as one may be in a callback
  transport::TimePoint now_{};
  ArrivalCounts counts_;
};

}  // namespace tributary::client

#pragma once
// The connections that a rank's listener has accepted. A connection stays in a waiting room
// (tributary/protocol/waiting_room.h) until it has proved that it belongs to the group. A refused connection stays for
// a short time, to deliver the refusal. A proved connection stays as long as its channel, and counts towards no limit.
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

/// The numbers of connections that this rank has closed since the start, by reason.
struct ArrivalCounts {
  std::uint64_t displaced = 0;  // newer connections came, and all places were taken
  std::uint64_t late = 0;       // connections that did not prove themselves in time
  std::uint64_t refused = 0;    // connections that gave no proof, or a wrong proof
  [[nodiscard]] std::uint64_t sum() const noexcept { return displaced + late + refused; }
};

class Arrivals {
 public:
  /// The numbers of places: 512 strangers at a time keep no rank out, even if all ranks come to rank 0 at once.
  static constexpr std::size_t kStrangers = 512, kAtOnceMax = 4096;
  static constexpr transport::Duration kProofLimit = std::chrono::seconds(5);
  static constexpr transport::Duration kLastWordsLimit = std::chrono::seconds(1);

  explicit Arrivals(std::uint32_t nranks);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Takes a connection and challenges it. If all places are taken, closes a stranger's connection at once to make
  /// room.
  Arrival& enter(ArrivalUser& user, std::unique_ptr<transport::Channel> channel, transport::TimePoint now);
  /// Notes the proof. From now on only its two sides close the connection, because the other side may already rely on
  /// the connection.
  void proved(WaitingRoom::Id id);
  /// Closes the connection, and sends `reason` over it unless this rank is refusing many others now. The caller gives
  /// up the channel.
  void refuse(WaitingRoom::Id id, const std::string& reason);
  void closed(WaitingRoom::Id id);

  void tick(transport::TimePoint now);
  /// Lets the waiting connections go on: this rank now knows all ranks.
  void resume();
  /// Extends the limit of every waiting connection by `absence`, the time for which this process was away.
  void excuse(transport::Duration absence);

  [[nodiscard]] const ArrivalCounts& counts() const noexcept { return counts_; }
  /// Returns the number of connections without proof, including refused connections whose refusal is on its way.
  [[nodiscard]] std::size_t unproved() const noexcept { return room_.size() + leaving_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return room_.places(); }

 private:
  void drop(WaitingRoom::Id id);

  WaitingRoom room_;
  WaitingRoom::Id next_ = 1;
  std::map<WaitingRoom::Id, std::unique_ptr<Arrival>> arrivals_;
  std::map<WaitingRoom::Id, transport::TimePoint> leaving_;  // refused connections, with the latest time to close each
  std::vector<WaitingRoom::Id> closed_;                      // kept until the next tick: they may be in a callback
  transport::TimePoint now_{};
  ArrivalCounts counts_;
};

}  // namespace tributary::client

#pragma once
// The number of segments that a rank has in flight on one lane: as many as the link carries in one measured round trip,
// and never more than the window that the aggregators have reserved.
//
// More segments would wait in queues on the way, which drop packets when they are full, and TCP would slow down. Fewer
// segments would leave the link idle. So the window is 1.5 times the product of rate and round trip, plus one segment.
// The round trip is the least of the last 10 to 20 s: each operation begins with empty queues. The rate is the greatest
// of the last 1 to 2 s. A rate is the number of results that came while a segment was under way, divided by the time in
// which they came, or in which their segments were sent if that took longer: a rank that gets no core for a while finds
// many results at once, which is not the link's rate (as in BBR: N. Cardwell et al., "BBR: Congestion-Based Congestion
// Control", ACM Queue 14 (2016), with the rates of Y. Cheng et al., draft-cheng-iccrg-delivery-rate-estimation). While
// the window is too small for the link, its segments all come back in one round trip, so the window grows by a half in
// each round trip. A rank that comes early waits for other ranks: its round trip is then long and its rate low, so its
// measurements change neither the least round trip nor the greatest rate.
//
// Where the manager knows the links' rates, it reserves twice the window that they need for the round trip that it
// assumes. A lane then begins with half of the reservation, and never has less. Else a lane begins with 128 KiB.
//
// Each rank may have a different window. All windows are at most the reservation, so no rank contributes a segment
// before it has the result of the segment that lies one reservation before it.
#include <cstdint>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::client {

class LaneWindow {
 public:
  struct Settings {
    std::uint32_t reserved = 1;  // segments that the aggregators have reserved
    std::uint32_t segment_bytes = 1;
    bool rates_known = false;  // the manager has chosen `reserved` by the links' rates
  };
  explicit LaneWindow(const Settings& settings);

  /// Returns how many segments may be in flight now: at least 1, at most the reserved number.
  [[nodiscard]] std::uint32_t segments() const noexcept { return segments_; }
  /// Notes that the contribution of this sequence has been sent. `part`: its length as a part of a full segment's; 0 if
  /// it is shorter than the operation's segments may be: it does not measure the round trip.
  void sent(std::uint64_t sequence, double part, transport::TimePoint now) noexcept;
  /// Notes that the result of this sequence has come. Results come in order, each of them once.
  void came(std::uint64_t sequence, transport::TimePoint now) noexcept;

 private:
  struct Sent {
    transport::TimePoint at{};
    double come = 0;                 // results, in full segments, that had come before this was sent
    transport::TimePoint came_at{};  // when the last of them came
    transport::TimePoint its_at{};   // when that one's segment was sent
    double part = 0;
  };
  /// The best of the present span of time and of the span before. A new span begins only when there is a measurement
  /// for it, so a pause forgets nothing.
  struct Best {
    double now = 0, before = 0;
    transport::TimePoint since{};
    void add(double value, transport::TimePoint at, transport::Duration span) noexcept;
    [[nodiscard]] double value() const noexcept { return now > before ? now : before; }
  };

  const std::uint32_t reserved_;
  const std::uint32_t least_;
  std::uint32_t segments_;
  std::vector<Sent> sent_;  // by sequence
  double come_ = 0;         // results that have come, in full segments
  std::uint32_t under_way_ = 0;
  transport::TimePoint came_at_{}, its_at_{};  // when the last result came, and when its segment was sent
  Best per_second_;                            // full segments that come in a second
  Best trips_per_second_;                      // 1 / round trip
};

}  // namespace tributary::client

#pragma once
// How many segments a rank has in flight on one lane: as many as the link holds for a round trip, as measured, and never
// more than the window that the aggregators have reserved.
//
// More would wait in queues on the way, which drop what they cannot hold, and TCP would slow down. Fewer would leave the
// link idle. So the window is 1.5 times the product of rate and round trip, and one segment. The round trip is the least
// of the last 10 to 20 s: each operation begins with empty queues. The rate is the greatest of the last 1 to 2 s: results
// that came while a segment was under way, over the time for which it was (as BBR measures it: N. Cardwell et al.,
// "BBR: Congestion-Based Congestion Control", ACM Queue 14 (2016)). While the window is too small for the link, all of
// it comes back in one round trip, so it grows by a half each round trip. A rank that comes early waits for the others:
// that makes a round trip long and a rate low, and neither counts.
//
// Where the manager knows the links' rates, its reservation is twice what they need for the round trip that it takes for
// granted. A lane then begins with a half of it, and has no less. Where nobody knows a rate, it begins with 128 KiB.
//
// Each rank has a window of its own: the rule that a segment is contributed only when the result of the segment a
// reservation before has come holds for all that are smaller.
#include <cstdint>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::client {

class LaneWindow {
 public:
  struct Settings {
    std::uint32_t reserved = 1;  // segments
    std::uint32_t segment_bytes = 1;
    bool rates_known = false;  // the manager has chosen `reserved` by the links' rates
  };
  explicit LaneWindow(const Settings& settings);

  /// Segments that may be in flight now: at least 1, at most those reserved.
  [[nodiscard]] std::uint32_t segments() const noexcept { return segments_; }
  /// Notes that the contribution of this sequence has been sent. `whole`: it is a segment of full length; shorter ones
  /// say nothing of the round trip.
  void sent(std::uint64_t sequence, bool whole, transport::TimePoint now) noexcept;
  /// Notes that the result of this sequence has come; each does once, in order.
  void came(std::uint64_t sequence, transport::TimePoint now) noexcept;

 private:
  struct Sent {
    transport::TimePoint at{};
    std::uint64_t come = 0;  // whole results that had come then
    bool whole = false;
  };
  /// The best of the present span of time and of the span before. A new span begins only when there is a measurement for
  /// it, so a pause forgets nothing.
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
  std::uint64_t come_ = 0;  // whole results
  Best per_second_;         // segments that come in a second
  Best trips_per_second_;   // 1 / round trip
};

}  // namespace tributary::client

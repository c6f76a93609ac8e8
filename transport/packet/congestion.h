#pragma once
// The number of packets that one connection may have under way, by delay and by congestion marks.
//
// Delay: Swift (Kumar et al., SIGCOMM 2020). While the round trip through the network stays below a target the window
// grows by one packet per round trip; above the target the window shrinks in proportion to the excess, once per round
// trip. The target rises as the window falls (flow scaling), so that many small windows do not ask for an empty queue.
// A window may be less than one packet: then packets are paced, a round trip over the window apart, and 64 children can
// share one port. A path may take longer than the target by itself. All senders that share the path obey the same rule.
// So if even a sender that has almost no window never sees a shorter delay, that delay is the path's own, and is added
// to the target.
//
// Marks: DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257). A moving share of marked packets says how hard to shrink. A
// lost packet counts as marked: if losses are the network's way to say "full", the share is high; if they are noise of
// the link, ten percent of lost packets cost ten percent of that, and not half of the window each time. Marks never
// shrink a window below one packet: a queue that marks even when each of many senders has one packet in it cannot make
// them send less. Delay can, because its target is scaled.
//
// Each acknowledgement goes to both rules, and the stronger of the two shrinks the window, at most once per round trip.
// A window begins with slow start, from ten packets, which ends with the first excess, mark or loss.
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

struct CongestionSettings {
  Duration target = std::chrono::microseconds(500);  // Swift's base target for the round trip through the network
  double scaling_max = 4;                            // flow scaling adds at most this many base targets
  double window_initial = 10;                        // packets
  double window_min = 0.05;
  double window_max = 4096;
};

class Congestion {
 public:
  explicit Congestion(const CongestionSettings& settings) noexcept;

  /// Notes that `packets` were acknowledged, `marked` of them with a mark, and that one of them took `delay` through
  /// the network. `limited`: the window was what held the sender back. Only then does it grow, as otherwise nothing has
  /// shown that more would fit.
  void acknowledged(double packets, double marked, Duration delay, bool limited, TimePoint now, Duration round_trip);
  /// Notes that a gap in the acknowledgements has shown the loss of `packets`.
  void lost(double packets, TimePoint now, Duration round_trip);
  /// Notes that `in_a_row` time-outs have passed without an answer.
  void timed_out(std::uint32_t in_a_row, TimePoint now) noexcept;

  /// The window, in packets.
  [[nodiscard]] double window() const noexcept { return window_; }
  /// The pause between two packets; zero for a window of one and more.
  [[nodiscard]] Duration pace(Duration round_trip) const noexcept;
  [[nodiscard]] double marked_share() const noexcept { return share_; }
  [[nodiscard]] Duration target() const noexcept;

 private:
  void observe(double packets, double marked, TimePoint now, Duration round_trip) noexcept;
  void learn_path(Duration delay, Duration wanted, TimePoint now, Duration round_trip) noexcept;
  void shrink(double by, double to_at_least, TimePoint now, Duration round_trip) noexcept;

  CongestionSettings settings_;
  double window_;
  double share_ = 1;  // DCTCP's alpha; 1: the first mark counts in full
  double seen_ = 0;   // packets observed in this round
  double seen_marked_ = 0;
  TimePoint observed_until_{};
  TimePoint may_shrink_{};
  bool slow_start_ = true;
  Duration path_{};                           // the path's own delay, if that is more than the target
  Duration least_above_ = Duration::max();    // the shortest delay since above_since_
  TimePoint above_since_ = TimePoint::max();  // all delays since then were above the target, with almost no window
  double scaling_alpha_ = 0;
  double scaling_beta_ = 0;
};

}  // namespace tributary::transport::packet

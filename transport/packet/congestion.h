#pragma once
// The number of packets that one connection may have under way, by delay and by congestion marks.
//
// Delay: Swift (Kumar et al., SIGCOMM 2020). While the round trip through the network stays below a target the window
// grows by one packet per round trip; above it, it shrinks in proportion to the excess, once per round trip. The target
// rises as the window falls (flow scaling), so that many small windows do not ask for an empty queue. A window may be
// less than one packet: then packets are paced, a round trip over the window apart, and 64 children can share one port.
// A path may take longer than the target by itself. If even a sender that has almost no window never sees a shorter
// delay, while all others that share the path obey the same rule, that delay is the path's, and is added to the target.
//
// Marks: DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257). A moving share of marked packets says how hard to shrink. A
// lost packet counts as marked: if losses are the network's way to say "full", the share is high; if they are noise of
// the link, ten percent of lost packets cost ten percent of that, and not half of the window each time. Marks never
// take the last packet of a window: a queue that marks already when each of many senders has one packet in it cannot
// share out less than that; delay can, as its target is scaled.
//
// Each acknowledgement asks both, and the stronger of the two shrinks the window, at most once per round trip. Both
// begin with slow start, from ten packets, which ends with the first excess, mark or loss.
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

struct CongestionSettings {
  Duration target = std::chrono::microseconds(500);  // Swift's base target for the round trip through the network
  double scaling_max = 4;                            // most base targets that flow scaling adds
  double window_initial = 10;                        // packets
  double window_min = 0.05;
  double window_max = 4096;
};

class Congestion {
 public:
  explicit Congestion(const CongestionSettings& settings) noexcept;

  /// `packets` were acknowledged, `marked` of them with a mark; one of them took `delay` through the network.
  /// `limited`: the window was the bound. Only then does it grow, as nothing has shown that more would fit otherwise.
  void acknowledged(double packets, double marked, Duration delay, bool limited, TimePoint now, Duration round_trip);
  /// A gap in the acknowledgements showed that `packets` were lost.
  void lost(double packets, TimePoint now, Duration round_trip);
  /// `in_a_row` time-outs passed without an answer.
  void timed_out(std::uint32_t in_a_row, TimePoint now) noexcept;

  /// In packets.
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
  double seen_ = 0;   // packets in this round of observation
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

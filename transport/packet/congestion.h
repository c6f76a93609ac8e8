#pragma once
// The number of packets that one connection may have under way, by delay and by congestion marks.
//
// Delay: Swift (Kumar et al., SIGCOMM 2020). While the round trip through the network stays below a target the window
// grows by one packet per round trip; above the target the window shrinks in proportion to the excess, once per round
// trip. The target rises as the window falls (flow scaling), so that senders with small windows accept a longer queue.
// A window may be less than one packet: then the pause between two packets is a round trip divided by the window, so
// that 64 children can share one port. A path may take longer than the target by itself. All senders that share the
// path obey the same rule. So if a sender with almost no window still sees no shorter delay, this delay is the path's
// own, and is added to the target.
//
// Marks: DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257). The window shrinks in proportion to a moving average of the
// share of marked packets. A lost packet counts as marked. If a full network causes the losses, the share is high. If
// noise of the link causes them, ten percent of lost packets give a share of ten percent, and do not halve the window
// each time. Marks never shrink a window below one packet: a queue may mark packets even when each of many senders has
// only one packet in it. Delay may shrink the window further, because its target is scaled.
//
// Each acknowledgement goes to both rules, and the stronger of the two shrinks the window, at most once per round trip.
// A window begins with slow start, from ten packets, which ends with the first excess, mark or loss.
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

struct CongestionSettings {
  Duration target = std::chrono::microseconds(500);  // Swift's base target for the round trip through the network
  double scaling_max = 4;                            // flow scaling adds at most this many base targets
  double window_initial = 10;                        // packets in the first window
  double window_min = 0.05;
  double window_max = 4096;
};

class Congestion {
 public:
  explicit Congestion(const CongestionSettings& settings) noexcept;

  /// Notes that `packets` were acknowledged, `marked` of them with a mark, and that one of them took `delay` through
  /// the network. `limited`: the sender had more to send than the window allowed. The window grows only in this case,
  /// because otherwise it was not tested.
  void acknowledged(double packets, double marked, Duration delay, bool limited, TimePoint now, Duration round_trip);
  /// Notes that a gap in the acknowledgements has shown the loss of `packets`.
  void lost(double packets, TimePoint now, Duration round_trip);
  /// Notes that `in_a_row` time-outs have passed without an answer.
  void timed_out(std::uint32_t in_a_row, TimePoint now) noexcept;

  /// The size of the window, in packets.
  [[nodiscard]] double window() const noexcept { return window_; }
  /// The pause between two packets; zero for a window of one packet or more.
  [[nodiscard]] Duration pace(Duration round_trip) const noexcept;
  [[nodiscard]] double marked_share() const noexcept { return share_; }
  [[nodiscard]] Duration target() const noexcept;

 private:
  void observe(double packets, double marked, TimePoint now, Duration round_trip) noexcept;
  void learn_path(Duration delay, Duration wanted, TimePoint now, Duration round_trip) noexcept;
  void shrink(double by, double to_at_least, TimePoint now, Duration round_trip) noexcept;

  CongestionSettings settings_;
  double window_;
  double share_ = 1;  // DCTCP's alpha; begins with 1, so that the first mark halves the window
  double seen_ = 0;   // packets acknowledged in this round
  double seen_marked_ = 0;
  TimePoint observed_until_{};
  TimePoint may_shrink_{};
  bool slow_start_ = true;
  Duration path_{};                           // the path's own delay, if it is longer than the target
  Duration least_above_ = Duration::max();    // the shortest delay since above_since_
  TimePoint above_since_ = TimePoint::max();  // since this time all delays exceed the target, with almost no window
  double scaling_alpha_ = 0;
  double scaling_beta_ = 0;
};

}  // namespace tributary::transport::packet

// Reads the measurements of ways to aggregators, and says which way is slow, lossy or narrow.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "client/cli/doctor/measurement.h"

namespace tributary::cli::doctor {
namespace {

using meter::bits_text;
using meter::part_text;
using meter::seconds_text;

constexpr double kReduceBytes = 64.0 * (1U << 20U);
constexpr double kBadBelow = 0.5;      // part of the wanted rate
constexpr double kFarSeconds = 0.001;  // a round trip within a data centre takes much less time
constexpr double kUnevenFactor = 20;   // p99 divided by the median
constexpr double kBusyFrom = 0.9;      // part of a core from which on the processor is the limit
constexpr std::uint32_t kTypicalFrame = 1500;

/// True if there are several measured ways, and `bound` holds for all of them.
template <class Bound>
bool all_ways(const std::vector<MeasuredWay>& ways, Bound bound) {
  std::size_t measured = 0, beyond = 0;
  for (const MeasuredWay& w : ways) {
    if (!w.trouble.empty()) continue;
    ++measured;
    if (bound(w)) ++beyond;
  }
  return measured > 1 && beyond == measured;
}

/// A measured rate, and the wanted rate: the rate of the links, or, if it is not known, of the best way.
struct Rate {
  double is = 0, wanted = 0;
  [[nodiscard]] double part() const { return wanted > 0 ? is / wanted : 1; }
};

Rate rate_of(const std::vector<MeasuredWay>& ways, const MeasuredWay& w, double meter::Way::* bits) {
  Rate rate{.is = w.way.*bits, .wanted = w.line_rate};
  if (w.line_rate > 0) return rate;
  for (const MeasuredWay& other : ways) rate.wanted = std::max(rate.wanted, other.way.*bits);
  return rate;
}

/// Returns the rate to the aggregator, or the rate with both directions busy, if that is the worse one.
Rate worst_rate(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  const Rate to = rate_of(ways, w, &meter::Way::bits_to);
  if (w.way.bits_both < 0) return to;
  const Rate both = rate_of(ways, w, &meter::Way::bits_both);
  return both.part() < to.part() ? both : to;
}

double greatest_loss(const MeasuredWay& w) {
  return std::max(w.way.lost_to, w.way.lost_from);
}

std::string name_of(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  const bool alone = std::ranges::count(ways, w.to, &MeasuredWay::to) == 1;
  return alone ? w.to : w.to + " at " + to_string(w.at);
}

std::string link_here(const MeasuredWay& w) {
  return w.interface.empty() ? "INTERFACE" : w.interface;
}

/// Says at which end of the way to look. If all ways are alike, this is the end at this host.
std::string where(bool everywhere, const MeasuredWay& w) {
  return everywhere ? "here, as all ways from this host are alike"
                    : "on the host of " + w.to + ", and here; the other ways say which of the two";
}

Finding rate_finding(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  Finding f{.part = "measured", .what = "rate to " + name_of(ways, w)};
  const Rate rate = worst_rate(ways, w);
  f.found = bits_text(w.way.bits_to) + " there";
  if (w.way.bits_both >= 0) f.found += ", " + bits_text(w.way.bits_both) + " both ways at once";
  if (w.line_rate > 0) f.found += ", of " + bits_text(w.line_rate);
  if (rate.part() >= kSlowBelow || w.interface == "lo") return f;  // the loopback device is no link
  if (w.way.processor >= kBusyFrom) {
    f.level = Level::unknown;
    f.found += "; one core of this host can send no more, so the core limits the rate, not the link";
    f.mend = "tributary perf all_reduce -b 64M -e 64M with TRIBUTARY_LANES=4 uses more cores";
    return f;
  }
  const auto slow = [&](const MeasuredWay& o) { return worst_rate(ways, o).part() < kSlowBelow; };
  f.level = rate.part() < kBadBelow ? Level::bad : Level::warning;
  f.why = cost_of_rate(rate.is, rate.wanted);
  f.mend = fmt::format(
      "ethtool {0} | grep Speed; tc qdisc show dev {0}: {1}. A link that has come up slow: ethtool -s {0} autoneg on; "
      "a limit: tc qdisc del dev {0} root",
      link_here(w), where(all_ways(ways, slow), w));
  return f;
}

Finding loss_finding(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  Finding f{.part = "measured", .what = "loss to " + name_of(ways, w)};
  f.found = part_text(std::max(w.way.lost_to, 0.0)) + " of the segments to it were sent again";
  if (w.way.lost_from >= 0) f.found += ", " + part_text(w.way.lost_from) + " of the segments from it came late";
  if (w.way.lost_full >= 0) f.found += ", with a full link " + part_text(w.way.lost_full);
  const double loss = greatest_loss(w);
  if (loss <= kLossyAbove) return f;
  f.level = loss > kLossBadAbove ? Level::bad : Level::warning;
  f.why = cost_of_loss(loss);
  f.mend = fmt::format(
      "ip -s link show {0}; ethtool -S {0} | grep -iE 'err|drop|crc|discard': {1}. Errors: change the "
      "cable or the transceiver; drops: tc qdisc show dev {0}, and the queues of the switch's port",
      link_here(w), where(all_ways(ways, [](const auto& o) { return greatest_loss(o) > kLossyAbove; }), w));
  return f;
}

Finding round_trip_finding(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  const meter::RoundTrips& r = w.way.round_trips;
  Finding f{.part = "measured", .what = "round trip to " + name_of(ways, w)};
  f.found = fmt::format("{} at least, {} in the middle, {} at the 99th percentile", seconds_text(r.least),
                        seconds_text(r.median), seconds_text(r.p99));
  if (r.least > kFarSeconds) {
    f.level = Level::warning;
    f.why = fmt::format("each level of a tree costs a small allreduce {}, so 1,000 of them take {}",
                        seconds_text(r.least), seconds_text(1000 * r.least));
    f.mend = "tracepath -n " + w.at.host +
             " shows where the time goes; give groups aggregators near them in the "
             "manager's topology";
  } else if (r.p99 > kFarSeconds && r.p99 > r.median * kUnevenFactor) {
    f.level = Level::warning;
    f.why = "one allreduce in a hundred waits for the slowest of its messages: with many ranks nearly every one does";
    f.mend = "look for other load on both hosts and on the way: top, ethtool -S " + link_here(w) + " | grep -i pause";
  }
  return f;
}

Finding mtu_finding(const std::vector<MeasuredWay>& ways, const MeasuredWay& w) {
  Finding f{.part = "measured", .what = "frames to " + name_of(ways, w)};
  f.found = fmt::format("{} bytes pass", w.way.mtu);
  if (!w.way.stalled) return f;
  f.level = Level::bad;
  f.found = fmt::format("frames of {} bytes vanish", w.mtu_here) +
            (w.way.mtu < w.mtu_here ? fmt::format(", frames of {} pass", w.way.mtu) : ", and small ones pass");
  f.why = "every group that sends more than a frame over this way waits until its time-out, then falls back";
  f.mend = fmt::format("set the MTU {} on every switch's port of the way; until then: ip link set {} mtu {}",
                       w.mtu_here, link_here(w), std::min(w.way.mtu, kTypicalFrame));
  return f;
}

Finding not_measured(const MeasuredWay& w) {
  return {.part = "measured",
          .what = "way to " + w.to,
          .level = Level::unknown,
          .found = w.trouble,
          .why = {},
          .mend = w.mend};
}

}  // namespace

std::string cost_of_rate(double rate, double wanted) {
  const double takes = meter::all_reduce_seconds(kReduceBytes, rate);
  return fmt::format("an allreduce of 64 MiB over this link takes {} in place of {}: {:.1f} times as long",
                     seconds_text(takes), seconds_text(meter::all_reduce_seconds(kReduceBytes, wanted)),
                     wanted / std::max(rate, 1.0));
}

std::string cost_of_loss(double part) {
  constexpr double kFrames = kReduceBytes / 9000;
  return fmt::format(
      "of the {:.0f} frames of 9000 bytes that carry 64 MiB some {:.0f} are lost; each costs a round trip, and at the "
      "end of a message a time-out of 10 to 200 ms",
      kFrames, std::max(part * kFrames, 1.0));
}

Findings check_measured(const std::vector<MeasuredWay>& ways) {
  Findings findings;
  for (const MeasuredWay& w : ways) {
    if (!w.trouble.empty()) {
      findings.push_back(not_measured(w));
      continue;
    }
    if (w.way.bits_to >= 0) findings.push_back(rate_finding(ways, w));
    findings.push_back(round_trip_finding(ways, w));
    if (w.way.lost_to >= 0) findings.push_back(loss_finding(ways, w));
    if (w.way.mtu != 0) findings.push_back(mtu_finding(ways, w));
  }
  return findings;
}

}  // namespace tributary::cli::doctor

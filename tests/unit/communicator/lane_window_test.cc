// The window that one rank uses on one lane, over links of every rate and length, on virtual time.
#include "client/collectives/in_network/lane_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using transport::TimePoint;

constexpr double kRates[] = {100e6, 1e9, 10e9, 25e9, 100e9};  // bits per second
constexpr double kTrips[] = {20e-6, 100e-6, 500e-6, 2e-3};    // round trips of an empty segment, in seconds

/// A rank's link to an aggregator and back. Segments travel whole, one after the other, in each direction; the queues
/// hold everything.
struct Way {
  double rate = 1e9;
  double trip = 100e-6;
  std::uint32_t segment_bytes = 16 << 10;

  [[nodiscard]] double on_wire() const { return segment_bytes * 8 / rate; }
  /// Seconds until one segment is back, if no other segment is under way.
  [[nodiscard]] double alone() const { return trip + 2 * on_wire(); }
  /// Bytes that fill the link.
  [[nodiscard]] double held() const { return rate / 8 * alone(); }
};

/// Operations, one after the other, over such a link with a window.
class Lane {
 public:
  /// `per_full`: segments that are as long as a full one together.
  Lane(const Way& way, const LaneWindow::Settings& settings, std::uint32_t per_full = 1)
      : way_(way), window_(settings), per_full_(per_full) {}

  /// Returns the seconds that one operation of so many segments takes. `late`: seconds by which the other ranks come
  /// later.
  double run(std::uint64_t segments, double late = 0) {
    const double began = now_;
    double up_free = now_, down_free = now_;
    std::deque<double> results;
    std::uint64_t sent = 0;
    for (std::uint64_t came = 0; came < segments; ++came) {
      while (sent < segments && results.size() < std::size_t{window_.segments()} * per_full_) {
        window_.sent(next_, 1.0 / per_full_, at(now_));
        up_free = std::max(now_, up_free) + way_.on_wire();
        const double summed = std::max(up_free + way_.trip / 2, began + late);
        down_free = std::max(summed, down_free) + way_.on_wire();
        results.push_back(down_free + way_.trip / 2);
        ++next_;
        ++sent;
        most_ = std::max(most_, results.size());
      }
      now_ = results.front();
      results.pop_front();
      window_.came(next_ - results.size() - 1, at(now_));
    }
    return now_ - began;
  }
  [[nodiscard]] double least(std::uint64_t segments) const {
    return way_.alone() + static_cast<double>(segments - 1) * way_.on_wire();
  }
  void pause(double seconds) { now_ += seconds; }
  void take(const Way& way) { way_ = way; }
  [[nodiscard]] std::uint32_t segments() const { return window_.segments(); }
  /// Returns the greatest number of segments in flight at once since the last call.
  [[nodiscard]] std::size_t take_most() { return std::exchange(most_, 0); }

 private:
  static TimePoint at(double seconds) {
    return TimePoint(1h) + std::chrono::duration_cast<transport::Duration>(std::chrono::duration<double>(seconds));
  }
  Way way_;
  LaneWindow window_;
  std::uint32_t per_full_;
  double now_ = 0;
  std::uint64_t next_ = 0;
  std::size_t most_ = 0;
};

std::uint32_t enough(const Way& way) {
  return static_cast<std::uint32_t>(4 * way.held() / way.segment_bytes) + 16;
}

TEST(LaneWindow, FillsALinkOfAnyUnknownRateAndLength) {
  for (const double rate : kRates) {
    for (const double trip : kTrips) {
      const Way way{.rate = rate, .trip = trip};
      Lane lane(way, {.reserved = enough(way), .segment_bytes = way.segment_bytes});
      lane.run(20'000);
      for (const std::uint64_t segments : {64U, 1000U, 5000U})
        EXPECT_LT(lane.run(segments), 1.03 * lane.least(segments)) << rate << " bit/s, " << trip << " s, " << segments;
    }
  }
}

TEST(LaneWindow, GrowsWithinTheFirstOperationByHalvesOfItself) {
  const Way way{.rate = 100e9, .trip = 2e-3};
  Lane lane(way, {.reserved = enough(way), .segment_bytes = way.segment_bytes});
  EXPECT_LT(lane.run(20'000), lane.least(20'000) + 16 * way.alone());
}

// Segments of exact sums are short, because their forms must fit in the buffers: they, too, measure the link.
TEST(LaneWindow, FillsALinkWithTheShortSegmentsOfExactSums) {
  constexpr std::uint32_t kPerFull = 10;
  const Way way{.rate = 25e9, .trip = 500e-6, .segment_bytes = 1600};
  Lane lane(way, {.reserved = enough(way), .segment_bytes = kPerFull * way.segment_bytes}, kPerFull);
  lane.run(40'000);
  EXPECT_LT(lane.run(20'000), 1.03 * lane.least(20'000));
  EXPECT_LT(static_cast<double>(lane.segments()) * kPerFull * way.segment_bytes,
            1.6 * way.held() + 2.0 * kPerFull * way.segment_bytes);
}

TEST(LaneWindow, LeavesQueuesShort) {
  for (const double rate : kRates) {
    for (const double trip : kTrips) {
      const Way way{.rate = rate, .trip = trip};
      Lane lane(way, {.reserved = enough(way), .segment_bytes = way.segment_bytes});
      for (int i = 0; i < 50; ++i) lane.run(500);
      std::ignore = lane.take_most();
      lane.run(5000);
      const double most = static_cast<double>(lane.take_most()) * way.segment_bytes;
      EXPECT_LT(most, std::max(1.6 * way.held() + 2.0 * way.segment_bytes, 64.0 * 1024 + 1))
          << rate << " bit/s, " << trip << " s";
    }
  }
}

TEST(LaneWindow, NeverTakesMoreThanIsReserved) {
  for (const bool known : {false, true}) {
    for (const std::uint32_t reserved : {1U, 2U, 3U, 8U, 256U}) {
      const Way way{.rate = 100e9, .trip = 2e-3};
      Lane lane(way, {.reserved = reserved, .segment_bytes = way.segment_bytes, .rates_known = known});
      EXPECT_GE(lane.segments(), 1U);
      for (int i = 0; i < 20; ++i) lane.run(2000);
      EXPECT_EQ(lane.take_most(), reserved);
    }
  }
}

TEST(LaneWindow, HasAtLeastHalfOfAReservationIfRatesAreKnown) {
  const Way way{.rate = 1e9, .trip = 20e-6};
  Lane lane(way, {.reserved = 16, .segment_bytes = way.segment_bytes, .rates_known = true});
  EXPECT_EQ(lane.segments(), 8U);
  for (int i = 0; i < 20; ++i) lane.run(200);
  EXPECT_EQ(lane.segments(), 8U);
  Lane longer({.rate = 1e9, .trip = 1e-3}, {.reserved = 16, .segment_bytes = way.segment_bytes, .rates_known = true});
  longer.run(200);
  EXPECT_GT(longer.segments(), 10U) << "the round trip is longer than the manager has assumed";
  EXPECT_EQ(LaneWindow({.reserved = 3, .segment_bytes = 1024, .rates_known = true}).segments(), 2U);
}

TEST(LaneWindow, BeginsWith128KiBWhereNobodyKnowsARate) {
  EXPECT_EQ(LaneWindow({.reserved = 128, .segment_bytes = 16 << 10}).segments(), 8U);
  EXPECT_EQ(LaneWindow({.reserved = 32, .segment_bytes = 64 << 10}).segments(), 2U);
  EXPECT_EQ(LaneWindow({.reserved = 32, .segment_bytes = 1 << 20}).segments(), 2U);
  EXPECT_EQ(LaneWindow({.reserved = 1, .segment_bytes = 1 << 20}).segments(), 1U);
}

TEST(LaneWindow, DoesNotTakeOtherRanksDelayForALongWay) {
  const Way way{.rate = 10e9, .trip = 100e-6};
  Lane lane(way, {.reserved = 1024, .segment_bytes = way.segment_bytes});
  for (int i = 0; i < 10; ++i) lane.run(500);
  const std::uint32_t usual = lane.segments();
  for (int i = 0; i < 50; ++i) lane.run(500, 0.1);
  EXPECT_LE(lane.segments(), usual + 1);
  EXPECT_GE(lane.segments(), usual - 1);
}

TEST(LaneWindow, FollowsAWayThatBecomesLongerOrNarrower) {
  const Way near{.rate = 10e9, .trip = 100e-6}, far{.rate = 10e9, .trip = 1e-3}, narrow{.rate = 1e9, .trip = 100e-6};
  Lane lane(near, {.reserved = 4096, .segment_bytes = near.segment_bytes});
  const auto settle = [&](const Way& way) {
    lane.take(way);
    for (int i = 0; i < 300; ++i) {
      lane.run(500);
      lane.pause(0.1);
    }
    EXPECT_LT(lane.run(2000), 1.03 * lane.least(2000));
    return lane.segments() * static_cast<double>(way.segment_bytes);
  };
  EXPECT_LT(settle(near), 1.6 * near.held() + 2.0 * near.segment_bytes);
  EXPECT_LT(settle(far), 1.6 * far.held() + 2.0 * far.segment_bytes);
  EXPECT_LT(settle(narrow), 1.6 * narrow.held() + 4.0 * narrow.segment_bytes);
  EXPECT_LT(settle(near), 1.6 * near.held() + 2.0 * near.segment_bytes);
}

TEST(LaneWindow, DoesNotTakeManyResultsThatARankFindsAtOnceForARate) {
  // The rank gets no core for a while, and results wait in its socket. Then it sends one more segment, and finds all
  // the results within the round trip of this segment.
  constexpr std::uint32_t kHalf = 8;
  LaneWindow window({.reserved = 2 * kHalf, .segment_bytes = 16 << 10, .rates_known = true});
  TimePoint now{1h};
  std::uint64_t sent = 0, came = 0;
  const auto send = [&](std::uint32_t segments) {
    for (std::uint32_t i = 0; i < segments; ++i) window.sent(sent++, 1, now);
  };
  const auto find = [&](std::uint32_t results) {
    now += 50us;
    for (std::uint32_t i = 0; i < results; ++i) window.came(came++, now);
  };
  send(kHalf - 1);
  for (int i = 0; i < 1000; ++i) {
    now += 10ms;
    send(1);
    find(kHalf - 1);
    find(1);
    send(kHalf - 1);
  }
  EXPECT_EQ(window.segments(), kHalf);
}

TEST(LaneWindow, TakesATimeThatWasReadBeforeTheLastResultCame) {
  // The next operation begins while the last result of the one before is handled. The input of its second segment comes
  // from a GPU at this moment, so that the segment is sent with the time of that result.
  LaneWindow window({.reserved = 16, .segment_bytes = 32 << 10});
  const TimePoint result_came{1h}, began = result_came + 5us;
  window.sent(0, 1, began);
  window.sent(1, 1, result_came);
  window.came(0, began + 30us);
  window.came(1, began + 40us);
  EXPECT_EQ(window.segments(), 4U) << "two segments in 40 us, with a round trip of 30 us";
}

TEST(LaneWindow, AShortSegmentSaysNothingOfTheRoundTrip) {
  LaneWindow window({.reserved = 64, .segment_bytes = 16 << 10});
  TimePoint now{1h};
  for (std::uint64_t sequence = 0; sequence < 100; ++sequence) {
    window.sent(sequence, 0, now);
    now += 30us;
    window.came(sequence, now);
  }
  EXPECT_EQ(window.segments(), 8U);
}

}  // namespace
}  // namespace tributary::client

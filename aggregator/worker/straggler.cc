#include "aggregator/worker/straggler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kSoon{1}, kLonger{5}, kLasting{15};
constexpr Seconds kWatchedMin{10};  // before this, the mean over 15 s says little
// After a longer time between two looks, this thread stood still or got no core. It then cannot know how long another
// process was late.
constexpr Seconds kLookMax{0.15};
constexpr std::size_t kManyChildren = 4;  // with fewer, waits in a row for the same child are often chance
// Parts from which a child is late. A single wait reaches `soon` of kMany after 0.9 s, and that of kFew after 1.6 s.
struct Limits {
  double soon, lasting;
};
constexpr Limits kMany{.soon = 0.6, .lasting = 0.1}, kFew{.soon = 0.8, .lasting = 0.2};
constexpr const Limits& limits_of(std::size_t children) {
  return children < kManyChildren ? kFew : kMany;
}
// The first of these after some waits, with many children. Each row is enough by itself.
struct Repeated {
  std::uint32_t waits, long_waits;
  double soon_limit;
};
constexpr Repeated kAgain{.waits = 4, .long_waits = 2, .soon_limit = 0.45};
constexpr Repeated kAgainAndAgain{.waits = 6, .long_waits = 3, .soon_limit = 0.3};
constexpr std::chrono::milliseconds kWait{80}, kLongWait{200};
constexpr std::chrono::milliseconds kLastingWait{1};  // shorter waits do not count in the mean over 15 s
constexpr double kSoonEnd = 0.1, kLastingEnd = 0.05;  // parts below which it is on time again
constexpr double kTimesTheNext = 8;
constexpr double kTimesAnother = 2;  // a late child is on time again if another child has half of its parts

}  // namespace

void StragglerWatch::note_wait(Parts::Waits& waits, bool now, bool low) noexcept {
  if (now && !waits.now) ++waits.count;
  if (!now && low) waits.count = 0;
  waits.now = now;
}

void StragglerWatch::look(TimePoint now, std::uint64_t missing, std::chrono::nanoseconds alone) noexcept {
  const Seconds since = std::min(Seconds(now - std::exchange(looked_at_, now)), kLookMax);
  if (parts_.size() < 2 || since <= Seconds::zero()) return;
  watched_ += since;
  // If many are missing, the few that have come were early.
  const bool few = static_cast<std::size_t>(std::popcount(missing)) <= std::max<std::size_t>(1, parts_.size() / 4);
  const double soon = 1 - std::exp(-since / kSoon), longer = 1 - std::exp(-since / kLonger),
               lasting = 1 - std::exp(-since / kLasting);
  for (std::size_t child = 0; child < parts_.size(); ++child) {
    const bool waits = few && (missing >> child & 1U) != 0;
    Parts& parts = parts_[child];
    parts.soon += soon * ((waits ? 1 : 0) - parts.soon);
    parts.lasting += lasting * ((waits && alone >= kLastingWait ? 1 : 0) - parts.lasting);
    parts.longer += longer * ((waits && alone >= kWait ? 1 : 0) - parts.longer);
    note_wait(parts.waits, waits && alone >= kWait, parts.soon < kSoonEnd);
    note_wait(parts.long_waits, waits && alone >= kLongWait, parts.soon < kSoonEnd);
    TRIBUTARY_ASSERT(parts.soon >= 0 && parts.soon <= 1 && parts.lasting >= 0 && parts.lasting <= 1,
                     "child {} is late for {} and {} of the time", child, parts.soon, parts.lasting);
  }
  if (straggler_) {
    const Parts& parts = parts_[*straggler_];
    const bool low = parts.soon < kSoonEnd && parts.lasting < kLastingEnd;
    if (low || another_is_as_late(*straggler_)) straggler_.reset();
    return;
  }
  straggler_ = find_soon();
  if (!straggler_ && watched_ >= kWatchedMin) straggler_ = find_lasting();
}

std::optional<std::uint32_t> StragglerWatch::find_soon() const noexcept {
  const auto child = find(&Parts::soon);
  return child && parts_[*child].soon >= soon_limit(*child) ? child : std::nullopt;
}

double StragglerWatch::soon_limit(std::uint32_t child) const noexcept {
  const double limit = limits_of(parts_.size()).soon;
  if (parts_.size() < kManyChildren) return limit;
  if (!stands_out(child, &Parts::longer)) return limit;
  const Parts& parts = parts_[child];
  for (const Repeated& row : {kAgainAndAgain, kAgain}) {
    if (parts.waits.count >= row.waits || parts.long_waits.count >= row.long_waits) return row.soon_limit;
  }
  return limit;
}

std::optional<std::uint32_t> StragglerWatch::find_lasting() const noexcept {
  const auto child = find(&Parts::lasting);
  return child && parts_[*child].lasting >= limits_of(parts_.size()).lasting ? child : std::nullopt;
}

bool StragglerWatch::another_is_as_late(std::uint32_t child) const noexcept {
  for (std::uint32_t other = 0; other < parts_.size(); ++other) {
    const bool alike = parts_[other].soon * kTimesAnother > parts_[child].soon &&
                       parts_[other].lasting * kTimesAnother > parts_[child].lasting;
    if (other != child && alike) return true;
  }
  return false;
}

double StragglerWatch::part(std::uint32_t child) const noexcept {
  TRIBUTARY_ASSERT(child < parts_.size(), "child {} of {}", child, parts_.size());
  return std::max(parts_[child].soon, parts_[child].lasting);
}

bool StragglerWatch::stands_out(std::uint32_t child, double Parts::* mean) const noexcept {
  for (std::uint32_t other = 0; other < parts_.size(); ++other) {
    if (other != child && parts_[other].*mean * kTimesTheNext > parts_[child].*mean) return false;
  }
  return true;
}

/// Returns the child whose mean is much higher than every other child's.
std::optional<std::uint32_t> StragglerWatch::find(double Parts::* mean) const noexcept {
  const auto most = static_cast<std::uint32_t>(std::ranges::max_element(parts_, {}, mean) - parts_.begin());
  return stands_out(most, mean) ? std::optional(most) : std::nullopt;
}

}  // namespace tributary::aggregator

#pragma once
// The aggregators that the manager treats as dead because a group saw them fail. A group may be mistaken, or lie. The
// group itself avoids the aggregator as long as it wants; all other groups avoid it only until it renews its lease.
// After such a renewal the manager does not doubt the aggregator for some time, which is longer after each renewal. So
// a group that blames every aggregator as often as it can costs the other groups only the time to the next renewal,
// from time to time.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tree-manager/service/clock.h"

namespace tributary::manager {

struct Suspicion {
  std::uint64_t group = 0;  // the group that saw it fail
  std::int64_t since = 0;   // seconds since 1970-01-01 UTC
  friend bool operator==(const Suspicion&, const Suspicion&) = default;
};

/// Has an entry for each aggregator that was ever doubted, until forget() removes it. One thread at a time may call it.
class Suspicions {
 public:
  static constexpr std::chrono::seconds kTrustedFirst{30};
  static constexpr std::chrono::seconds kTrustedLast{600};

  /// Notes that a group saw the aggregator fail. Returns true if the aggregator is doubted from now on.
  bool report(const std::string& aggregator, const Suspicion& suspicion, Clock::TimePoint now);
  /// Notes that the aggregator has renewed its lease. Returns true if it was doubted until now.
  bool renewed(const std::string& aggregator, Clock::TimePoint now);
  /// Notes that the aggregator has registered again. Returns true if it was doubted until now. This gives the
  /// aggregator no time without doubt: the group was right, and the old process had died.
  bool registered(const std::string& aggregator);
  void forget(const std::string& aggregator) { doubts_.erase(aggregator); }
  [[nodiscard]] std::optional<Suspicion> of(const std::string& aggregator) const;

 private:
  struct Doubt {
    std::optional<Suspicion> now;
    Clock::TimePoint trusted_until{};
    std::chrono::seconds trusted_next = kTrustedFirst;
  };
  std::map<std::string, Doubt> doubts_;
};

}  // namespace tributary::manager

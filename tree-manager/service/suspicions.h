#pragma once
// The aggregators that the manager takes for dead because a group saw them fail. A group may be mistaken, or lie. The
// group itself avoids the aggregator for as long as it likes; all other groups avoid it only until it renews its lease.
// After such a renewal the manager does not doubt the aggregator for a while, each time for longer. So a group that
// blames every aggregator as often as it can costs the others now and then the time to one renewal, and no more.
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

/// One thread at a time. Has an entry for each aggregator that was ever doubted, until forget() removes it.
class Suspicions {
 public:
  static constexpr std::chrono::seconds kTrustedFirst{30};
  static constexpr std::chrono::seconds kTrustedLast{600};

  /// Notes what a group saw. Returns true if this report makes the aggregator doubted.
  bool report(const std::string& aggregator, const Suspicion& suspicion, Clock::TimePoint now);
  /// Notes that it has renewed its lease. Returns true when it was doubted until now.
  bool renewed(const std::string& aggregator, Clock::TimePoint now);
  /// Notes that it has registered anew. Returns true when it was doubted until now. It earns no trust by this: the
  /// group was right, and the old process had died.
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

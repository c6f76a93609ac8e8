#pragma once
// The aggregators that are held to be dead because a group saw them fail. A group may be mistaken, or lie: its word
// counts for itself as long as it likes, and for all other groups only until the aggregator renews its lease. An
// aggregator that has answered so is not doubted again for a while, each time for longer. So a group that blames every
// aggregator as often as it can costs the others no more than the time to one renewal, now and then.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tree-manager/service/clock.h"

namespace tributary::manager {

struct Suspicion {
  std::uint64_t group = 0;  // the one that saw it fail
  std::int64_t since = 0;   // seconds since 1970-01-01 UTC
  friend bool operator==(const Suspicion&, const Suspicion&) = default;
};

/// One thread at a time. As large as there are aggregators that were ever doubted; forget() takes one out.
class Suspicions {
 public:
  static constexpr std::chrono::seconds kTrustedFirst{30};
  static constexpr std::chrono::seconds kTrustedLast{600};

  /// Notes what a group saw. Returns true when the aggregator is doubted from now on, and was not before.
  bool report(const std::string& aggregator, const Suspicion& suspicion, Clock::TimePoint now);
  /// Notes that it has renewed its lease. Returns true when it was doubted until now.
  bool renewed(const std::string& aggregator, Clock::TimePoint now);
  /// Notes that it has registered anew. Returns true when it was doubted until now. It earns no trust by this: the
  /// process that died was not slandered.
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

#pragma once
// The choice of the manager that leads, among several that share a store. A candidate holds a lease and writes the
// leader's key with it, if there is none; the key goes when the lease ends. How the calls travel is the store's affair.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::manager {

using LeaseId = std::int64_t;

/// One leadership, as its store must know it.
struct Term {
  LeaseId lease = 0;
  std::uint64_t revision = 0;    // of the store when it made the leader's key: above those of all earlier leaderships
  std::uint64_t version = 0;     // of the leader's key: grows by one with each write
  std::uint64_t fence_base = 0;  // the fence is its sum with `revision`; 0: there is none yet
  std::string candidate;         // as in the leader's key
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_base + revision; }
};

/// The leader that others see.
struct LeaderSeen {
  std::string url;
  std::uint64_t revision = 0;
  friend bool operator==(const LeaderSeen&, const LeaderSeen&) = default;
};

/// Calls block for a bounded time. Errors: unreachable (what was asked for may have been done or not), io, denied.
class Election {
 public:
  virtual ~Election() = default;
  /// Makes a lease that ends `life` after its last renewal.
  [[nodiscard]] virtual Result<LeaseId> make_lease(std::chrono::milliseconds life) = 0;
  /// Makes the leader's key with this lease. Returns nullopt if there is one already.
  [[nodiscard]] virtual Result<std::optional<Term>> stand(LeaseId lease) = 0;
  /// Returns false if the lease has ended.
  [[nodiscard]] virtual Result<bool> renew(LeaseId lease) = 0;
  /// Ends the lease, and the leadership with it, if it can be done now.
  virtual void resign(LeaseId lease) = 0;
  [[nodiscard]] virtual Result<std::optional<LeaderSeen>> look() = 0;
};

}  // namespace tributary::manager

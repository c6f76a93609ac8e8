#pragma once
// The choice of the manager that leads, among several that share a store. A candidate holds a lease and, if there is no
// leader's key, writes the key with its lease; the store removes the key when the lease ends. Each kind of store has
// its own calls.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::manager {

using LeaseId = std::int64_t;

/// The data of one leadership that its store needs.
struct Term {
  LeaseId lease = 0;
  std::uint64_t revision = 0;    // the store's revision when the leader's key was made: it only grows
  std::uint64_t version = 0;     // version of the leader's key, which grows by one with each write
  std::uint64_t fence_base = 0;  // the fence is fence_base + revision; 0: there is no base yet
  std::string candidate;         // the candidate in the leader's key
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_base + revision; }
};

/// The leader that other managers see.
struct LeaderSeen {
  std::string url;
  std::uint64_t revision = 0;
  friend bool operator==(const LeaderSeen&, const LeaderSeen&) = default;
};

/// Calls block for a bounded time. Errors: unreachable (the call may have had its effect or not), io, denied.
class Election {
 public:
  virtual ~Election() = default;
  /// Makes a lease that ends `life` after its last renewal.
  [[nodiscard]] virtual Result<LeaseId> make_lease(std::chrono::milliseconds life) = 0;
  /// Makes the leader's key with this lease. Returns nullopt if the key exists already.
  [[nodiscard]] virtual Result<std::optional<Term>> stand(LeaseId lease) = 0;
  /// Renews the lease. Returns false if it has ended.
  [[nodiscard]] virtual Result<bool> renew(LeaseId lease) = 0;
  /// Ends the lease, and with it the leadership, if the store can be reached now.
  virtual void resign(LeaseId lease) = 0;
  [[nodiscard]] virtual Result<std::optional<LeaderSeen>> look() = 0;
};

}  // namespace tributary::manager

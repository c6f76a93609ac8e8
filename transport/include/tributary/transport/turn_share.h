#pragma once
// Shares of a thread's turns. Parties whose channels one thread serves, such as the tenants of an aggregator's worker,
// each have a share: a deficit round robin over bytes that are read and written.
//
// In a round each party may move kTurnBytesPerRound bytes for each unit of its weight. A party that has moved more
// waits, and its next rounds pay for it. Between two rounds the thread looks at the network, so that a party with
// little work waits for at most one round of the other parties. A party's channels take turns in the order of asking.
//
// Packets of all parties come in one queue, so a thread also reads the packets of a party that must wait. It keeps
// them, and gives no credit for more. Over packets a round ends when the queue is empty and each party has had its
// turns.
//
// The price: a look at the network, about 1 us, in each round. While only one party has a share, there are no rounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport {

inline constexpr std::int64_t kTurnBytesPerRound = 128 << 10;
/// The bytes that a system call counts for at least, so that a flood of small frames pays for its calls.
inline constexpr std::int64_t kTurnBytesOfCall = 16 << 10;
/// The bytes that a packet counts for at least when it is read, as the checks of its headers cost time, too.
inline constexpr std::int64_t kTurnBytesOfPacket = 2 << 10;
/// The most bytes of debt that a party keeps: one frame of the greatest size beyond what it might move.
inline constexpr std::int64_t kTurnDebtMax = 2 << 20;

/// The share of one party. Used only by the thread of its channels.
class TurnShare {
 public:
  /// `parties`: the number of all shares of this thread, this one included.
  TurnShare(std::uint32_t weight, std::shared_ptr<std::size_t> parties) : parties_(std::move(parties)) {
    set_weight(weight);
    balance_ = quantum_;
    ++*parties_;
  }
  ~TurnShare() { --*parties_; }
  TurnShare(const TurnShare&) = delete;
  TurnShare& operator=(const TurnShare&) = delete;

  void set_weight(std::uint32_t weight) noexcept {
    TRIBUTARY_ASSERT(weight > 0, "a party with the weight 0 has no turns");
    quantum_ = kTurnBytesPerRound * weight;
  }
  /// True if the party may go on in this round. Rounds have ascending numbers.
  [[nodiscard]] bool may_go(std::uint64_t round) noexcept {
    if (alone()) return true;
    if (const std::uint64_t rounds = round - std::exchange(round_, round); rounds > 0) {
      constexpr std::uint64_t kRoundsToPayAll = kTurnDebtMax / kTurnBytesPerRound + 1;
      balance_ += static_cast<std::int64_t>(std::min(rounds, kRoundsToPayAll)) * quantum_;
      balance_ = std::min(balance_, quantum_);
    }
    return balance_ > 0;
  }
  /// The bytes that one channel of the party may move in its turn, of at most `bytes_max`.
  [[nodiscard]] std::size_t bytes_in_turn(std::size_t bytes_max) const noexcept {
    return alone() ? bytes_max : std::min(bytes_max, static_cast<std::size_t>(std::max(balance_, kTurnBytesOfCall)));
  }
  /// Counts bytes that a channel of the party has moved; they count as `least` or more.
  void spend(std::size_t bytes, std::int64_t least = kTurnBytesOfCall) noexcept {
    if (alone()) return;
    balance_ -= std::max(static_cast<std::int64_t>(bytes), least);
    balance_ = std::max(balance_, -kTurnDebtMax);
  }

 private:
  [[nodiscard]] bool alone() const noexcept { return *parties_ == 1; }

  const std::shared_ptr<std::size_t> parties_;
  std::int64_t quantum_ = 0;
  std::int64_t balance_ = 0;  // bytes that the party may still move in this round; negative: its debt
  std::uint64_t round_ = 0;
};

}  // namespace tributary::transport

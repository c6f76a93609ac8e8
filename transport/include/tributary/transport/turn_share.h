#pragma once
// Shares of a thread's turns. Parties whose channels one thread serves, such as the tenants of an aggregator's worker,
// each have a share: a deficit round robin over bytes that are read and written.
//
// In a round the parties may move bytes in proportion to their weights: the greatest weight kTurnBytesPerRound bytes,
// or more if the least weight would otherwise move less than the bytes of a call. A party that has moved more waits,
// and its next rounds pay for it. Between two rounds the thread looks at the network, so that a party with little work
// waits for at most one round of the other parties. A party's channels take turns in the order of asking.
//
// A round must be short beside the bytes that a party can have under way. The other sides send more only when this side
// has read something, so a party whose part of a round is more than its windows never gets its part.
//
// Packets of all parties come in one queue, so a thread also reads the packets of a party that must wait. It keeps
// them, and gives no credit for more. Over packets a round ends when the queue is empty and each party has had its
// turns.
//
// The price: a look at the network, about 1 us, in each round. While only one party has a share, there are no rounds.
// While the thread has time for all, no party waits, and what each of them moves is decided elsewhere: by the network,
// by the devices, by the other sides. waits() tells the two cases apart.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
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

/// The parties of one thread together.
struct TurnParties {
  std::multiset<std::uint32_t> weights{};  // of the shares that exist now
  std::uint64_t waits = 0;                 // the sum of TurnShare::waits(), also of shares that have ended
};

/// The share of one party. Used only by the thread of its channels.
class TurnShare {
 public:
  /// `parties`: all shares of this thread have the same one.
  TurnShare(std::uint32_t weight, std::shared_ptr<TurnParties> parties)
      : parties_(std::move(parties)), weight_(parties_->weights.insert(weight)) {
    TRIBUTARY_ASSERT(weight > 0, "a party with the weight 0 has no turns");
    balance_ = quantum();
  }
  ~TurnShare() { parties_->weights.erase(weight_); }
  TurnShare(const TurnShare&) = delete;
  TurnShare& operator=(const TurnShare&) = delete;

  void set_weight(std::uint32_t weight) {
    TRIBUTARY_ASSERT(weight > 0, "a party with the weight 0 has no turns");
    if (*weight_ == weight) return;
    parties_->weights.erase(weight_);
    weight_ = parties_->weights.insert(weight);
  }
  /// True if the party may go on in this round. Rounds have ascending numbers: all channels of the party count the same
  /// rounds.
  [[nodiscard]] bool may_go(std::uint64_t round) noexcept {
    if (alone()) return true;
    TRIBUTARY_ASSERT(round >= round_, "a share has seen round {}, and its thread is in round {}", round_, round);
    if (const std::uint64_t rounds = round - std::exchange(round_, round); rounds > 0) {
      const std::int64_t bytes = quantum();
      const auto rounds_to_pay_all = static_cast<std::uint64_t>(kTurnDebtMax / bytes + 2);
      balance_ += static_cast<std::int64_t>(std::min(rounds, rounds_to_pay_all)) * bytes;
      balance_ = std::min(balance_, bytes);
    }
    if (balance_ > 0) return true;
    if (std::exchange(waited_in_, round) != round) {
      ++waits_;
      ++parties_->waits;
    }
    return false;
  }
  /// The number of rounds in which the party had more to move than its share.
  [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }
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
  [[nodiscard]] bool alone() const noexcept { return parties_->weights.size() == 1; }
  /// The bytes of one round.
  [[nodiscard]] std::int64_t quantum() const noexcept {
    const std::int64_t least = *parties_->weights.begin(), greatest = *parties_->weights.rbegin();
    return *weight_ * std::max({kTurnBytesPerRound / greatest, kTurnBytesOfCall / least, std::int64_t{1}});
  }

  const std::shared_ptr<TurnParties> parties_;
  std::multiset<std::uint32_t>::iterator weight_;  // in parties_
  std::int64_t balance_ = 0;  // bytes that the party may still move in this round; negative: its debt
  std::uint64_t round_ = 0;
  std::uint64_t waits_ = 0;
  std::uint64_t waited_in_ = 0;  // the last round that is counted in waits_
};

}  // namespace tributary::transport

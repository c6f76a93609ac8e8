#pragma once
// A connection's part in the turns of its thread, as a base class of connections. The connection may belong to a share.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "tributary/transport/turn_share.h"

namespace tributary::transport::turn {

class TurnPart {
 public:
  /// Makes the connection take its turns as a part of this share; nullptr: it always may go on.
  void set_turn_share(std::shared_ptr<TurnShare> share) noexcept { share_ = std::move(share); }
  [[nodiscard]] const std::shared_ptr<TurnShare>& turn_share() const noexcept { return share_; }
  /// True if the connection may go on in this round of shares.
  [[nodiscard]] bool may_go(std::uint64_t round) const noexcept { return !share_ || share_->may_go(round); }
  /// The bytes that the connection may move in its turn, of at most `bytes_max`.
  [[nodiscard]] std::size_t bytes_in_turn(std::size_t bytes_max) const noexcept {
    return share_ ? share_->bytes_in_turn(bytes_max) : bytes_max;
  }
  /// Counts bytes that the connection has moved; they count as `least` or more.
  void spend(std::size_t bytes, std::int64_t least = kTurnBytesOfCall) const noexcept {
    if (share_) share_->spend(bytes, least);
  }

 private:
  std::shared_ptr<TurnShare> share_;
};

/// The number of the present round of shares, as a base class of a thread's turns. A round ends with the first turn
/// that leaves nothing to do for the connections that may go on. It also ends after some turns, because strangers may
/// keep the queue of packets full.
///
/// A thread has one count of rounds, because a share may have connections in all cores that the thread drives.
class Rounds {
 public:
  [[nodiscard]] std::uint64_t round() const noexcept { return *round_; }
  /// The rounds are those of `leader` from now on, which drives this core on its thread.
  void follow_rounds(const Rounds& leader) noexcept {
    round_ = leader.round_;
    follows_ = true;
  }

 protected:
  Rounds() = default;
  void begin_turn() noexcept {
    if (follows_ || (!over_ && ++turns_ < kTurnsMax)) return;
    ++*round_;
    turns_ = 0;
  }
  void end_turn(bool nothing_left) noexcept { over_ = nothing_left; }

 private:
  static constexpr std::uint32_t kTurnsMax = 8;

  std::shared_ptr<std::uint64_t> round_ = std::make_shared<std::uint64_t>(0);
  std::uint32_t turns_ = 0;
  bool over_ = true;
  bool follows_ = false;
};

}  // namespace tributary::transport::turn

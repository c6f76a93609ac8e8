#pragma once
// The messages between ranks and rank 0 on the control star. A message is a few fields of a frame header and a body:
// JSON if it has structure, text if a person reads it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::client {

inline constexpr std::uint64_t kNever = UINT64_MAX;

/// The value of a stalled message that asks, long before the time-out, whether the tree hangs; it blames no rank.
inline constexpr std::uint64_t kSuspicion = 1;

/// The value of a stalled message about an operation that ranks seem to have called differently: it asks only for the
/// call of each rank.
inline constexpr std::uint64_t kDisagreement = 2;

/// The value of a joined message: the sender can never reach an aggregator.
inline constexpr std::uint64_t kCannotJoin = 1;

/// The value of a freeze message: the trees work, but better trees are available.
inline constexpr std::uint64_t kMoves = 1;

/// The value of a first commit: the ranks share memory, and all collectives use it.
inline constexpr std::uint64_t kCommitLocal = 1;
/// Another value of a first commit: the ranks of each host reduce among themselves first. encode_between() makes the
/// body of this commit and of every later commit.
inline constexpr std::uint64_t kCommitHosts = 2;

struct ControlMessage {
  FrameType type = FrameType::abort;
  std::uint32_t epoch = 0;
  std::uint64_t operation = 0;  // next_operation, commit, amended, stalled, inquiry, progress, an abort by mismatch:
                                // an operation's number. second_way: the rank that has left the first way
  std::uint64_t value = 0;      // abort: the Errc. stalled: kSuspicion, kDisagreement or 0. joined: kCannotJoin or 0.
                                // inquiry: 0, or 1 + a rank of which the receiver is to tell what it sees.
                                // freeze: kMoves or 0. commit: kCommit... or 0. second_way: a rank, or kNever for all
  std::string body{};
};

/// The content of lane_failed, and of a joined message that reports a failure.
struct LaneFailure {
  std::string aggregator;
  std::string reason;
};
[[nodiscard]] std::string encode(const LaneFailure& failure);
[[nodiscard]] LaneFailure decode_lane_failure(const std::string& body);

/// One rank's answer to `freeze`, for one lane.
struct LaneHolding {
  LaneHolding(std::uint64_t prefix_held = 0, std::vector<std::uint64_t> wanted_here = {})
      : prefix(prefix_held), wanted(std::move(wanted_here)) {}
  std::uint64_t prefix;               // this rank has the results of exactly the sequences below this
  std::vector<std::uint64_t> wanted;  // ascending: sequences whose missing result only this rank gets
  friend bool operator==(const LaneHolding&, const LaneHolding&) = default;
};
using Holdings = std::vector<LaneHolding>;  // by lane
[[nodiscard]] std::string encode(const Holdings& holdings);
[[nodiscard]] Result<Holdings> decode_holdings(const std::string& body);

/// One rank's part of a repair (repair_plan.h), for one lane.
struct LaneMoves {
  struct To {
    std::uint32_t rank = 0;
    std::uint64_t prefix = 0;  // number of results that this rank has
    friend bool operator==(const To&, const To&) = default;
  };
  std::uint64_t own = 0;              // number of results that this rank has reported
  std::uint64_t lo = 0, hi = 0;       // least and greatest number of results over all ranks
  std::optional<std::uint32_t> from;  // the rank that sends the missing results below hi; nullopt: none is missing
  std::vector<To> to;                 // the ranks to which this rank sends the results that they lack
  std::vector<std::uint64_t> wanted;  // ascending: results that only one rank gets, and this rank lacks them
  friend bool operator==(const LaneMoves&, const LaneMoves&) = default;
};
using Moves = std::vector<LaneMoves>;  // by lane
[[nodiscard]] std::string encode(const Moves& moves);
[[nodiscard]] Result<Moves> decode_moves(const std::string& body);

/// One rank's answer to an inquiry about an operation.
struct Progress {
  bool called = false;          // the rank has called the operation
  bool ended = false;           // the operation has ended on that rank
  bool waits_for_tree = false;  // the rank has contributed, and no result has come for a while
  bool unasked = false;         // rank 0 has not asked: the operation, between the ranks, has stood still for a second
  std::uint64_t oldest = kNever;       // the first operation that has not ended on that rank
  std::uint64_t steps = 0;             // number of segments with results, plus number of rounds begun
  std::uint64_t stood_still_ms = 0;    // how long the rank stood still, if for 0.15 of the time-out or longer
  RankTroubles troubles{};             // of this rank itself
  std::optional<Sighting> sighting{};  // what the rank sees of another one; the fields above then say nothing
  bool signature_known = false;
  Signature signature;
  // The event for which the oldest operation waits, for people: "segment 3 of lane 0", "rank 2 in round 5 of the
  // fallback".
  std::string waits_for;
};
[[nodiscard]] std::string encode(const Progress& progress);
[[nodiscard]] Result<Progress> decode_progress(const std::string& body);

}  // namespace tributary::client

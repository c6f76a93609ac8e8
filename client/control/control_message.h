#pragma once
// What ranks and rank 0 tell each other on the control star. A message is a frame header's few fields and a body: JSON
// where it has structure, text where a person reads it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {

inline constexpr std::uint64_t kNever = UINT64_MAX;

/// A stalled message that asks whether the tree hangs, long before the time-out: nobody is to blame yet.
inline constexpr std::uint64_t kSuspicion = 1;

/// A stalled message about an operation that ranks were seen to call differently: who called what is the question, and
/// nothing else.
inline constexpr std::uint64_t kDisagreement = 2;

/// A joined's value: this rank has no way to any aggregator, and will have none.
inline constexpr std::uint64_t kCannotJoin = 1;

/// freeze: nothing is wrong with the trees; better ones are there.
inline constexpr std::uint64_t kMoves = 1;

/// A first commit's value: the ranks share memory, and all collectives go there.
inline constexpr std::uint64_t kCommitLocal = 1;
/// Another: the ranks of each host reduce among themselves first. Then, and in later ones, the body is
/// encode_between()'s.
inline constexpr std::uint64_t kCommitHosts = 2;

struct ControlMessage {
  FrameType type = FrameType::abort;
  std::uint32_t epoch = 0;
  std::uint64_t operation = 0;  // propose, next_operation, commit, stalled, inquiry, progress, an abort by mismatch: an
                                // operation's number. second_way: whose
  std::uint64_t value = 0;      // abort: the Errc. stalled: kSuspicion, kDisagreement or 0. joined: kCannotJoin or 0.
                                // freeze: kMoves or 0. commit: kCommit... or 0. second_way: a rank, or kNever for all
  std::string body{};
};

/// lane_failed and a joined that did not succeed.
struct LaneFailure {
  std::string aggregator;
  std::string reason;
};
[[nodiscard]] std::string encode(const LaneFailure& failure);
[[nodiscard]] LaneFailure decode_lane_failure(const std::string& body);

/// One rank's answer to freeze, of one lane.
struct LaneHolding {
  LaneHolding(std::uint64_t prefix_held = 0, std::vector<std::uint64_t> wanted_here = {})
      : prefix(prefix_held), wanted(std::move(wanted_here)) {}
  std::uint64_t prefix;               // results that it has: exactly the sequences below
  std::vector<std::uint64_t> wanted;  // of those that it lacks: whose result is for this rank alone. Ascending
  friend bool operator==(const LaneHolding&, const LaneHolding&) = default;
};
using Holdings = std::vector<LaneHolding>;  // by lane
[[nodiscard]] std::string encode(const Holdings& holdings);
[[nodiscard]] Result<Holdings> decode_holdings(const std::string& body);

/// One rank's part of a repair (repair_plan.h), of one lane.
struct LaneMoves {
  struct To {
    std::uint32_t rank = 0;
    std::uint64_t prefix = 0;  // results that it has
    friend bool operator==(const To&, const To&) = default;
  };
  std::uint64_t own = 0;              // results that this rank has reported
  std::uint64_t lo = 0, hi = 0;       // the least and the greatest number over all ranks
  std::optional<std::uint32_t> from;  // where it gets what it lacks of those below hi; none: it lacks nothing
  std::vector<To> to;                 // who gets from it what they lack
  std::vector<std::uint64_t> wanted;  // by the one rank that they are for, whichever it is; ascending
  friend bool operator==(const LaneMoves&, const LaneMoves&) = default;
};
using Moves = std::vector<LaneMoves>;  // by lane
[[nodiscard]] std::string encode(const Moves& moves);
[[nodiscard]] Result<Moves> decode_moves(const std::string& body);

/// One rank's answer to an inquiry after an operation.
struct Progress {
  bool called = false;            // has called it
  bool ended = false;             // and it has ended there
  bool waits_for_tree = false;    // contributed, and nothing has come back for a while
  std::uint64_t oldest = kNever;  // the first operation that has not ended there
  std::uint64_t steps = 0;        // segments contributed, or rounds begun
  bool signature_known = false;
  Signature signature;
  std::string waits_for;  // of the oldest, for people: "segment 3 of lane 0", "rank 2 in round 5 of the fallback"
};
[[nodiscard]] std::string encode(const Progress& progress);
[[nodiscard]] Result<Progress> decode_progress(const std::string& body);

}  // namespace tributary::client

#pragma once
// What ranks and rank 0 tell each other on the control star. A message is a frame header's few fields and a body: JSON
// where it has structure, text where a person reads it.
#include <cstdint>
#include <string>
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

/// One rank's answer to freeze: per lane, how many results it has, in sequence.
using Holdings = std::vector<std::uint64_t>;
[[nodiscard]] std::string encode(const Holdings& holdings);
[[nodiscard]] Result<Holdings> decode_holdings(const std::string& body);
[[nodiscard]] std::string encode(const std::vector<Holdings>& by_rank);
[[nodiscard]] Result<std::vector<Holdings>> decode_all_holdings(const std::string& body);

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

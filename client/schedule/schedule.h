#pragma once
// The fallback collectives as schedules: the sends, receives and reductions of every rank, round by round, as pure
// functions without I/O.
//
// To run a schedule, every rank builds a Schedule from the same Parameters (except `rank` and `in_place`). For each
// round from 0 to rounds() - 1, the rank:
//   1. calls actions(round, out),
//   2. does the LocalCopy and LocalReduce actions, which come first in the list, in list order, before a byte is sent,
//   3. posts all Send and Receive actions: all Sends to one peer in list order, and all Receives from one peer in list
//      order; the order of peers is free,
//   4. goes on when all actions are done. A Send is done when the network no longer reads its bytes; a Receive is done
//      when its bytes have landed and, if it says so, are reduced.
// A round may be empty on some ranks.
//
// Promises of the schedules; the unit tests run every algorithm over many numbers of ranks and elements to prove them:
//   - rounds() is the same on every rank, and a Send of round k has its Receive in round k of the peer, with the same
//     number of elements, in the same order between these ranks. So ordered channels without buffers never deadlock.
//   - Within a round, no other Send or Receive reads or writes memory that a Receive writes.
//   - No action writes to Buffer::send. In a call in place, send and recv share memory, and no action reads a part of
//     send after an action wrote that part of recv. Messages do not depend on in_place, which may differ by rank.
//   - A message has at most piece_bytes (or one element), so that the reduction of one piece overlaps with the transfer
//     of the next, and a staging buffer of piece_bytes suffices. No message is empty, except in a barrier.
//   - Operand orders are fixed. Either one rank finishes an element of an all_reduce and the others copy it, or all
//     ranks finish it with the same operands in the same order: all ranks get the same bits, also in every later run.
//   - Only the last reduction of an element carries divisor == ranks: an average is divided once, before that
//     reduction's only rounding. Each reduction says how many ranks' inputs are in each of its operands, so that an
//     average can travel scaled (kernels/include/tributary/kernels/reduce_step.h).
//
// Rounding. Let u be the unit roundoff of the type that stores a partial result (2^-24 for float32, 2^-11 for float16,
// 2^-8 for bfloat16), and d the number of reductions of an element. A sum has |error| <= (d u + O(u^2)) sum |x_i| (N.
// J. Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14 (1993), 783-799). A float32 average has
// one u more for its division. With N ranks, d is N - 1 for ring, reduce_scatter_gather and, in float32, direct; d is
// ceil(log2 N) for binomial, recursive doubling and halving-doubling. 8- and 16-bit floats are rounded once per
// reduction, so a tree with its few reductions is better than a ring. `direct` reduces up to 64 ranks in one pass and
// rounds once.
//
// Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA
// 19 (2005), 49-66; P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC
// 69 (2009), 117-124 (ring); J. Bruck et al., Efficient algorithms for all-to-all communications in multiport
// message-passing systems, IEEE TPDS 8 (1997), 1143-1156.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/types.h"

namespace tributary::schedule {

enum class Buffer : std::uint8_t {
  send,     // the caller's input, as in tributary.h; only where the API uses it (broadcast: only at the root)
  recv,     // the caller's output, only where the API uses it (reduce: only at the root)
  scratch,  // temporary, Schedule::scratch_count() elements, undefined at the start
};

/// A range of one buffer, in elements, not bytes.
struct Slice {
  Buffer buffer = Buffer::send;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// into = from. The two slices do not overlap.
struct LocalCopy {
  Slice from;
  Slice into;
};

/// into = the reduction of `operands` adjacent slices, in their order, in one pass: `first`, then the first.count
/// elements after it, and so on. `operands` is 2 to 64, or the number of ranks for an exact sum; `into` is one of the
/// operands, or overlaps with none of them.
struct LocalReduce {
  Slice first;
  std::uint32_t operands = 2;
  Slice into;
  std::uint32_t divisor = 1;      // as in kernels::Step
  std::uint32_t first_ranks = 1;  // ranks whose inputs are in the first operand; each other has one input
};

struct Send {
  std::uint32_t peer = 0;
  Slice from;
};

/// copy: into = received.  received_first: into = received op operand.  received_second: into = operand op received.
enum class Landing : std::uint8_t { copy, received_first, received_second };

struct Receive {
  std::uint32_t peer = 0;
  Slice into;
  Landing landing = Landing::copy;
  Slice operand;                     // unused for copy; the same memory as `into` or disjoint from it
  std::uint32_t divisor = 1;         // as in kernels::Step
  std::uint32_t received_ranks = 1;  // ranks whose inputs are in the received data; unused for copy
  std::uint32_t operand_ranks = 1;   // ranks whose inputs are in the operand
};

using Action = std::variant<LocalCopy, LocalReduce, Send, Receive>;

/// A rank sends at most this many full pieces in a round, and receives as many. A wrap-around may add one cut.
inline constexpr std::size_t kPiecesPerRound = 32;

/// The actions of one round, about 10 KiB. All rounds use the same memory, so no round allocates.
class Actions {
 public:
  static constexpr std::size_t kCapacity = 4 * kPiecesPerRound + 4;
  void clear() noexcept { size_ = 0; }
  void push(const Action& action) noexcept {
    TRIBUTARY_ASSERT(size_ < kCapacity, "action {} of at most {} in a round", size_ + 1, kCapacity);
    actions_[size_++] = action;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const Action& operator[](std::size_t index) const noexcept { return actions_[index]; }
  [[nodiscard]] const Action* begin() const noexcept { return actions_.data(); }
  [[nodiscard]] const Action* end() const noexcept { return actions_.data() + size_; }

 private:
  std::array<Action, kCapacity> actions_{};
  std::size_t size_ = 0;
};

/// Each comment gives the algorithm's cost: the number of rounds, then the elements that the busiest rank sends. N is
/// the number of ranks, n the elements in the whole vector, p the largest power of two <= N.
enum class Algorithm : std::uint8_t {
  ring,                   // all_reduce: 2(N-1), 2n(N-1)/N. reduce_scatter, all_gather: N-1, n(N-1)/N
  recursive_doubling,     // all_reduce: log2 p (+2), n log2 p (+n). Each round sends the whole vector
  halving_doubling,       // all_reduce: 2 log2 p (+2), 2n(p-1)/p (+n), Rabenseifner
  binomial,               // broadcast, reduce, gather, scatter: ceil(log2 N); n ceil(log2 N) at most (broadcast)
  scatter_all_gather,     // broadcast: ceil(log2 N) + N-1, about 2n, van de Geijn
  reduce_scatter_gather,  // reduce: ring, then each rank sends its part to the root; 2n(N-1)/N
  direct,                 // reduce_scatter: every part goes to its owner, which reduces in rank order; n(N-1)/N.
                          // Exact all_reduce and reduce: the parts then go around a ring, or to the root; 2n(N-1)/N
  bruck,                  // all_gather: ceil(log2 N), n(N-1)/N
  dissemination,          // barrier: ceil(log2 N), 0
  pairwise,               // all_to_all: N-1, n(N-1)/N
  linear,                 // gather, scatter: every part goes between its rank and the root; n(N-1)/N
};
inline constexpr std::uint8_t kAlgorithmCount = 11;

[[nodiscard]] const char* name(Algorithm algorithm) noexcept;

/// Returns the algorithms that can run a collective. Algorithm::direct can also run every exact reduction.
[[nodiscard]] std::span<const Algorithm> algorithms(Collective collective) noexcept;
/// Returns the most bytes of a vector of which an exact all_reduce sends the whole to every other rank, in one round.
[[nodiscard]] constexpr std::uint64_t exact_short_bytes(std::uint32_t ranks) noexcept {
  constexpr std::uint64_t kReceivedMax = 64U << 10;  // beyond them the bytes take longer than a ring's rounds
  return kReceivedMax / ranks;
}

/// One rank's view of one collective call. Counts and in-place rules are as in tributary.h.
struct Parameters {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t ranks = 1;
  std::uint32_t rank = 0;
  std::uint32_t root = 0;           // root of a broadcast, reduce, gather or scatter
  std::uint64_t count = 0;          // elements; per rank for reduce_scatter, all_gather, all_to_all, gather, scatter
  std::uint32_t element_bytes = 1;  // size_of(dtype); equal on all ranks, like every member that decides cuts
  bool exact = false;  // one rank reduces each element once, from all ranks' inputs; with Algorithm::direct
  std::uint64_t input_elements_max = 0;  // exact: the most elements of a message with inputs; 0: as piece_bytes says
  std::uint32_t piece_bytes = 1 << 18;   // the most bytes of a message: at least one element, at most kPeerBytesMax
  bool in_place = false;                 // this rank passes one buffer for both; ignored if it has only one
};

class Emitter;
/// Emits what one rank does in one step of a phase.
using Step = void(const Parameters&, std::uint64_t step, Emitter&) noexcept;

/// A schedule: a value of a few words, cheap to copy. Any thread may call its const functions.
class Schedule {
 public:
  /// Throws std::invalid_argument for a programming error: an algorithm that the collective does not have, rank or root
  /// >= ranks, an element of 0 bytes, an all_to_all in place.
  explicit Schedule(const Parameters& parameters);

  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }
  /// Returns the number of elements of Buffer::scratch that this rank needs for the whole schedule.
  [[nodiscard]] std::uint64_t scratch_count() const noexcept { return scratch_count_; }
  /// Replaces `out` by the actions of round < rounds(). A pure function: call it for rounds in any order, repeatedly.
  void actions(std::uint64_t round, Actions& out) const noexcept;

 private:
  /// Steps of one kind, one after the other. A round has `steps_per_round` steps that do not depend on each other. If
  /// a step has too many messages for one round, it takes `rounds_per_step` rounds. At least one of these numbers is
  /// 1.
  struct Phase {
    Step* step = nullptr;
    std::uint64_t steps = 0;
    std::uint64_t steps_per_round = 1;
    std::uint64_t rounds_per_step = 1;
    std::uint64_t piece_count = 1;  // elements of a full piece
    [[nodiscard]] std::uint64_t rounds() const noexcept {
      return (steps + steps_per_round - 1) / steps_per_round * rounds_per_step;
    }
  };
  static constexpr std::size_t kPhasesMax = 4;

  void compose() noexcept;
  void compose_all_reduce() noexcept;
  void compose_rooted() noexcept;
  void compose_by_parts() noexcept;
  void compose_exact() noexcept;
  /// Adds a phase. message_count: number of elements in the largest message of any rank in any step. piece_count: the
  /// most elements of a piece; 0: as piece_bytes says.
  void add(Step& step, std::uint64_t steps, std::uint64_t message_count, bool independent = false,
           std::uint64_t piece_count = 0) noexcept;

  Parameters parameters_;
  std::uint64_t piece_count_ = 1;  // elements of a full piece
  std::uint64_t rounds_ = 0;
  std::uint64_t scratch_count_ = 0;
  std::array<Phase, kPhasesMax> phases_{};
  std::size_t phase_count_ = 0;
};

}  // namespace tributary::schedule

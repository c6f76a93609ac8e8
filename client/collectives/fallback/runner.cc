#include "client/collectives/fallback/runner.h"

#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {
namespace {

constexpr unsigned kStrandShift = 32;  // a cookie holds the strand from this bit on, and the action's index below it

/// If a rank's part has fewer bytes, the frames of a second strand cost more time than the second strand saves.
constexpr std::uint64_t kPartBytesMin = std::uint64_t{1} << 19;
constexpr std::uint64_t kExactPartBytesMin = std::uint64_t{1} << 16;

/// Returns whether an all_reduce runs as two strands. On a ring two ranks wait only once, so they need no second strand.
/// A reduction of all inputs at once waits for the kernel's pass over them, too.
bool runs_as_two(schedule::Algorithm algorithm, bool all_inputs, std::uint64_t bytes, std::uint32_t ranks) noexcept {
  if (all_inputs) return ranks > 1 && bytes / ranks >= kExactPartBytesMin;
  return algorithm == schedule::Algorithm::ring && ranks > 2 && bytes / ranks >= kPartBytesMin;
}

}  // namespace

Piece whole(const Operation& o) {
  return {.collective = o.signature.collective,
          .root = o.signature.root,
          .send = o.send,
          .recv = o.recv,
          .count = o.signature.count,
          .in_place = o.in_place};
}

void FallbackRunner::run(const Operation& operation, std::span<const Piece> pieces, std::function<void()> done) {
  operation_ = &operation;
  pieces_.assign(pieces.begin(), pieces.end());
  done_ = std::move(done);
  piece_ = 0;
  rounds_started_ = 0;
  start_piece();
  proceed();
}

void FallbackRunner::stop() {
  operation_ = nullptr;
  strand_count_ = 0;
}

void FallbackRunner::start_piece() {
  strand_count_ = turn_ = 0;
  if (piece_ == pieces_.size()) return;
  const Piece& p = pieces_[piece_];
  const std::uint64_t element = operation_->element_bytes();
  const std::uint64_t bytes = amount_in_all(p.collective, p.count * element, nranks_);
  const bool all_inputs = takes_all_inputs(operation_->signature.op) && row_of(p.collective).reduces;
  const auto algorithm = [&] {
    if (all_inputs) return schedule::Algorithm::direct;
    return p.algorithm.value_or(policy_.at(p.collective, bytes).algorithm);
  };
  const Plan plan{.ranks = nranks_, .rank = rank_, .algorithm = algorithm()};
  const bool two = p.collective == Collective::all_reduce && runs_as_two(plan.algorithm, all_inputs, bytes, nranks_);
  std::uint64_t begin = 0;
  for (const std::uint64_t end : {two ? p.count / 2 : p.count, p.count}) {
    if (begin == end && strand_count_ > 0) break;
    TRIBUTARY_ASSERT(strand_count_ < kStrandsMax && begin <= end, "strand {} has elements {} to {}", strand_count_,
                     begin, end);
    Piece half = p;
    if (half.send != nullptr) half.send += begin * element;
    if (half.recv != nullptr) half.recv += begin * element;
    half.count = end - begin;
    strands_[strand_count_].start(*operation_, half, plan, piece_ * kStrandsMax + strand_count_);
    ++strand_count_;
    begin = end;
  }
}

/// Starts the next round, if the round before it has ended.
bool FallbackRunner::take_turn() {
  for (std::size_t i = 0; i < strand_count_; ++i) {
    const std::size_t mine = turn_;
    TRIBUTARY_ASSERT(mine < strand_count_, "strand {} of {} has its turn", mine, strand_count_);
    Strand& strand = strands_[mine];
    if (!strand.all_started() && !strand.round_ended()) return false;
    turn_ = (turn_ + 1) % strand_count_;
    if (strand.all_started()) continue;  // this strand needs no more turns
    ++rounds_started_;
    strand.start_round(mesh_, class_, trace_, std::uint64_t{mine} << kStrandShift);
    return true;
  }
  return false;
}

// Starts rounds until it must wait. It is a loop, not a recursion, because rounds may be empty, and a transport may
// complete a round at once.
void FallbackRunner::proceed() {
  if (starting_) return;
  starting_ = true;
  while (operation_ != nullptr) {
    if (take_turn()) continue;
    if (!std::ranges::all_of(strands(), &Strand::round_ended)) break;
    if (piece_ == pieces_.size()) {
      operation_ = nullptr;
      const auto done = std::move(done_);
      starting_ = false;
      return done();
    }
    ++piece_;
    start_piece();
  }
  starting_ = false;
}

void FallbackRunner::received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) {
  if (operation_ == nullptr || receive.operation != operation_->number) return;
  trace_.came(peer, receive, payload.size());
  strands_[receive.cookie >> kStrandShift].received(static_cast<std::uint32_t>(receive.cookie), payload);
  proceed();
}

void FallbackRunner::sent(std::uint64_t cookie) {
  if (operation_ == nullptr) return;
  strands_[cookie >> kStrandShift].sent();
  proceed();
}

std::uint64_t FallbackRunner::round() const noexcept {
  std::uint64_t last = 0;
  for (const Strand& strand : strands()) last = std::max(last, strand.round());
  return last;
}

std::vector<std::uint32_t> FallbackRunner::waits_for() const {
  std::vector<std::uint32_t> ranks;
  if (operation_ == nullptr) return ranks;
  for (const Strand& strand : strands()) strand.add_waits(ranks);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace tributary::client

#pragma once
// Runs the fallback: one operation at a time, piece by piece, round by round, as the operation's schedule says.
//
// A round ends when this rank's neighbours have done their part of it. While this rank waits for them, its links are
// idle. So a long ring runs as two strands, of half the vector each, which start rounds in turn: while one waits, the
// other strand's bytes are under way. So does a long exact sum: while this rank adds the inputs of one strand, the
// network carries the other strand's. The turns are strict: every rank starts the rounds of both strands in the same
// order. So frames come on each channel in the order in which this rank posts their receives, and the earliest round
// that has not ended on all ranks can always end.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "client/collectives/fallback/strand.h"
#include "client/tuning/policy.h"

namespace tributary::client {

/// Returns the whole operation as one piece.
[[nodiscard]] Piece whole(const Operation& operation);

class FallbackRunner {
 public:
  /// `peer_class`: the class of connections that only this runner uses. `policy` chooses the algorithm of pieces that
  /// name no algorithm; it outlives the runner, and is the same on every rank. `trace` gets the moments of messages;
  /// `known_as`: as in MessageTrace.
  FallbackRunner(PeerMesh& mesh, PeerClass peer_class, std::uint32_t rank, std::uint32_t nranks,
                 const tuning::Policy& policy, std::shared_ptr<SegmentTrace> trace,
                 std::span<const std::uint32_t> known_as)
      : mesh_(mesh),
        class_(peer_class),
        rank_(rank),
        nranks_(nranks),
        policy_(policy),
        trace_(std::move(trace), rank, peer_class, known_as) {}

  /// Runs `pieces` in order; calls `done` once, possibly before this returns. Call it only when not busy(). The
  /// operation must outlive the run.
  void run(const Operation& operation, std::span<const Piece> pieces, std::function<void()> done);
  [[nodiscard]] bool busy() const noexcept { return operation_ != nullptr; }
  [[nodiscard]] bool runs(const Operation& operation) const noexcept { return operation_ == &operation; }
  /// Returns how many rounds of the present piece were started.
  [[nodiscard]] std::uint64_t round() const noexcept;
  /// Returns how many rounds were started in the last run(), over all pieces and strands.
  [[nodiscard]] std::uint64_t rounds_started() const noexcept { return rounds_started_; }
  /// Returns the ranks for whose messages this rank waits, for error texts.
  [[nodiscard]] std::vector<std::uint32_t> waits_for() const;
  void stop();

  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent(std::uint64_t cookie);

 private:
  static constexpr std::size_t kStrandsMax = 2;

  void start_piece();
  void proceed();
  [[nodiscard]] bool take_turn();
  [[nodiscard]] std::span<const Strand> strands() const noexcept { return std::span(strands_).first(strand_count_); }

  PeerMesh& mesh_;
  const PeerClass class_;
  const std::uint32_t rank_;
  const std::uint32_t nranks_;
  const tuning::Policy& policy_;
  const MessageTrace trace_;
  const Operation* operation_ = nullptr;
  std::vector<Piece> pieces_;
  std::function<void()> done_;
  std::size_t piece_ = 0;
  std::array<Strand, kStrandsMax> strands_;
  std::size_t strand_count_ = 0;
  std::uint64_t rounds_started_ = 0;
  std::size_t turn_ = 0;  // the strand whose round is started next
  bool starting_ = false;
};

}  // namespace tributary::client

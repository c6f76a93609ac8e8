#pragma once
// Runs the fallback: one operation at a time, piece by piece, round by round, as its schedule says.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/collectives/schedule/schedule.h"
#include "client/core/operation.h"
#include "client/tuning/policy.h"

namespace tributary::client {

/// A contiguous part of an operation, itself a collective: the whole operation, or what a lost tree has left of it.
struct Piece {
  Collective collective = Collective::all_reduce;
  std::uint32_t root = 0;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::uint64_t count = 0;  // elements, as in the collective's own call
  bool in_place = false;
};
/// The operation as it was called.
[[nodiscard]] Piece whole(const Operation& operation);

class FallbackRunner {
 public:
  /// `policy`: which algorithm; outlives the runner, and is every rank's.
  FallbackRunner(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, const tuning::Policy& policy)
      : mesh_(mesh), rank_(rank), nranks_(nranks), policy_(policy) {}

  /// Runs `pieces` in order; `done` is called once, possibly before this returns. Only when not busy. The operation
  /// outlives the run.
  void run(const Operation& operation, std::vector<Piece> pieces, std::function<void()> done);
  [[nodiscard]] bool busy() const noexcept { return operation_ != nullptr; }
  [[nodiscard]] std::uint64_t round() const noexcept { return round_; }
  /// The ranks whose receives are outstanding, for messages.
  [[nodiscard]] std::vector<std::uint32_t> waits_for() const;
  void stop();

  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent();

 private:
  void start_piece();
  void start_round();
  void proceed();
  void do_local(const schedule::Action& action);
  void do_remote(const schedule::Action& action, std::uint64_t index);
  void land(const schedule::Receive& action, std::span<std::byte> payload);
  [[nodiscard]] std::byte* at(const schedule::Slice& slice) const noexcept;
  [[nodiscard]] std::size_t bytes(const schedule::Slice& slice) const noexcept;
  [[nodiscard]] FrameHeader header() const;

  PeerMesh& mesh_;
  const std::uint32_t rank_;
  const std::uint32_t nranks_;
  const tuning::Policy& policy_;
  const Operation* operation_ = nullptr;
  std::vector<Piece> pieces_;
  std::function<void()> done_;
  std::size_t piece_ = 0;
  std::optional<schedule::Schedule> schedule_;
  schedule::Actions actions_;
  std::vector<std::byte> scratch_;
  std::uint64_t round_ = 0;
  std::uint32_t outstanding_ = 0;
  bool starting_ = false;
};

}  // namespace tributary::client

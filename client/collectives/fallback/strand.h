#pragma once
// One piece of an operation while its schedule runs, a round at a time.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/collectives/fallback/form_exchange.h"
#include "client/collectives/fallback/message_trace.h"
#include "client/collectives/fallback/peer_mesh.h"
#include "client/operation/operation.h"
#include "client/schedule/schedule.h"

namespace tributary::client {

/// A contiguous part of an operation, which is itself a collective: the whole operation, the ranks' share of it, or a
/// part that a lost tree did not finish.
struct Piece {
  Collective collective = Collective::all_reduce;
  std::uint32_t root = 0;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::uint64_t count = 0;  // elements, counted as in a call of this collective
  bool in_place = false;
  std::optional<schedule::Algorithm> algorithm{};  // none: the group's policy chooses
};

/// The plan of a piece: its algorithm, the number of ranks that run it, and this rank's number among these ranks.
struct Plan {
  std::uint32_t ranks = 1;
  std::uint32_t rank = 0;
  schedule::Algorithm algorithm = schedule::Algorithm::ring;
};

class Strand {
 public:
  /// `number` names the piece within its operation; it is the same on all ranks. The operation outlives the run.
  void start(const Operation& operation, const Piece& piece, const Plan& plan, std::uint64_t number);

  [[nodiscard]] bool all_started() const noexcept { return round_ == rounds_; }
  [[nodiscard]] bool round_ended() const noexcept { return outstanding_ == 0; }
  /// Returns how many rounds of the piece were started.
  [[nodiscard]] std::uint64_t round() const noexcept { return round_; }
  /// Does the round's local actions, and posts the other actions. `cookie` marks the sends and receives; its lower 32
  /// bits must be 0.
  void start_round(PeerMesh& mesh, PeerClass peer_class, const MessageTrace& trace, std::uint64_t cookie);
  void received(std::uint32_t index, std::span<std::byte> payload);
  void sent() noexcept { --outstanding_; }
  /// Adds to `ranks` the ranks from which the round still receives.
  void add_waits(std::vector<std::uint32_t>& ranks) const;

 private:
  void do_local(const schedule::Action& action);
  void do_exact(const schedule::LocalReduce& reduce);
  /// Return the exchange of forms for the inputs of an exact sum between hosts, which travel as forms; null for
  /// results, which travel as they are, and for other operations.
  [[nodiscard]] FormExchange* forms_to_send(const schedule::Slice& from) const noexcept {
    return from.buffer == schedule::Buffer::send ? forms_ : nullptr;
  }
  [[nodiscard]] FormExchange* forms_to_take(const schedule::Slice& into) const noexcept {
    return into.buffer == schedule::Buffer::scratch ? forms_ : nullptr;
  }
  void do_send(PeerMesh& mesh, PeerClass peer_class, const MessageTrace& trace, const schedule::Send& send,
               std::uint64_t cookie);
  void do_receive(PeerMesh& mesh, PeerClass peer_class, const schedule::Receive& receive, std::uint64_t cookie);
  void land(const schedule::Receive& action, std::span<std::byte> payload);
  [[nodiscard]] std::byte* at(const schedule::Slice& slice) const noexcept;
  [[nodiscard]] std::size_t bytes(const schedule::Slice& slice) const noexcept;
  [[nodiscard]] FrameHeader header() const;

  const Operation* operation_ = nullptr;
  Piece piece_;
  std::uint64_t number_ = 0;
  std::optional<schedule::Schedule> schedule_;
  schedule::Actions actions_;  // actions of the round that was started last
  std::vector<std::byte> scratch_;
  std::vector<const void*> exact_inputs_;  // room for the operands of an exact sum
  FormExchange exchange_;
  FormExchange* forms_ = nullptr;  // set for exact sums between hosts
  std::uint64_t rounds_ = 0;
  std::uint64_t round_ = 0;
  std::uint32_t outstanding_ = 0;
};

}  // namespace tributary::client

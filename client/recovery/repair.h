#pragma once
// Gives every result that some rank has to every rank that lacks it, after a tree is lost.
//
// For each lane, let lo and hi be the least and the greatest number of results over all ranks. Every rank has the
// results of sequences below lo. No rank has one from hi on, and every rank's input for those is intact, so the
// fallback reduces them. The sequences between, at most a window, are moved here, as rank 0's plan says
// (repair_plan.h):
//   - Results for all, and one owner's data, go down the lane's tree, from ranks that have them to ranks that lack
//     them.
//   - A result for one rank, if that rank wants it, is made again from all ranks' inputs, up a tree to that rank.
// An owner always has its own data, so they are not sent to it.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/control/control_message.h"

namespace tributary::client {

/// Makes this rank's answer to freeze; the lanes must be frozen.
[[nodiscard]] Holdings holdings_of(const std::vector<LaneLink*>& lanes, std::uint32_t rank);

class Repair {
 public:
  /// `lanes` are frozen; they and their operations outlive the repair.
  Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes);

  /// Errc::corrupt if these moves do not fit the state that this rank has reported: then they are wrong.
  [[nodiscard]] Status start(Moves moves, std::function<void()> done);
  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent();
  /// Returns the sequence below which all ranks have this lane's results when the repair is done.
  [[nodiscard]] std::uint64_t everyones(std::size_t lane) const noexcept { return moves_[lane].hi; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  /// One sequence that passes through this rank.
  struct Item {
    std::uint32_t lane = 0;
    const SequenceEntry* entry = nullptr;
    const std::byte* bytes = nullptr;  // the bytes to pass on; nullptr: not there yet
    std::uint32_t missing = 0;         // receives that it still needs
    bool again = false;                // the result is made again: the receives are inputs
    std::vector<std::uint32_t> from;   // ascending: the ranks that send inputs, if the result is made again
    std::vector<std::uint32_t> ranks;  // by `from`: the number of ranks whose inputs come through that rank
    std::vector<std::vector<std::byte>> inputs;
    std::vector<std::byte> sum;
  };
  [[nodiscard]] Status check(std::size_t lane) const;
  [[nodiscard]] Status plan(std::uint32_t lane);
  [[nodiscard]] bool wants(const SequenceEntry& entry, const LaneMoves& moves) const noexcept;
  void pass_result(std::uint32_t lane, const SequenceEntry& entry);
  void make_again(std::uint32_t lane, const SequenceEntry& entry);
  void receive(std::uint32_t peer, std::uint64_t item, std::byte* into);
  void send(std::uint32_t peer, std::uint64_t item);
  void reduce(Item& item);
  void flush();
  void finish_one();

  PeerMesh& mesh_;
  const std::uint32_t rank_;
  const std::uint32_t nranks_;
  const std::vector<LaneLink*> lanes_;
  Moves moves_;
  std::deque<Item> items_;                                  // in their order; a deque, so that a place stays valid
  std::map<std::uint32_t, std::deque<std::uint64_t>> out_;  // by peer: items still to be sent to it, in order
  std::function<void()> done_;
  std::uint64_t outstanding_ = 1;  // start() itself holds one, so that `done` comes last
  std::uint64_t moved_ = 0;
};

}  // namespace tributary::client

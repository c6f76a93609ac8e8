#pragma once
// Gives every result that some rank has to every rank that lacks it, after a tree is lost.
//
// For each lane, let lo and hi be the least and the greatest number of results over all ranks. Every rank has the
// results of sequences below lo. No rank has a result from sequence hi on; every rank's input for these sequences is
// intact, so the fallback reduces them. The repair moves the sequences between, at most a window, as rank 0's plan says
// (repair_plan.h):
//   - Results for all ranks, and data of one owner, go down the plan's tree for this lane, from ranks that have them to
//     ranks that lack them.
//   - If a rank lacks a result that only this rank gets, all ranks make it again from their inputs, up a tree.
// An owner always has its own data, so no rank sends them to it.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/control/control_message.h"

namespace tributary::client {

/// Returns the content of this rank's answer to `freeze`; the lanes must be frozen.
[[nodiscard]] Holdings holdings_of(const std::vector<LaneLink*>& lanes, std::uint32_t rank);

class Repair {
 public:
  /// `lanes` are frozen; the lanes and their operations must outlive the repair.
  Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes);

  /// Starts this rank's moves. Errc::corrupt: the moves are wrong, because they contradict this rank's reported state.
  [[nodiscard]] Status start(Moves moves, std::function<void()> done);
  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent();
  /// Returns the sequence below which all ranks have this lane's results after the repair.
  [[nodiscard]] std::uint64_t everyones(std::size_t lane) const noexcept { return moves_[lane].hi; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  /// One sequence whose result or inputs pass through this rank.
  struct Item {
    std::uint32_t lane = 0;
    const SequenceEntry* entry = nullptr;
    std::span<const std::byte> bytes;  // the bytes to pass on; empty: they have not come yet
    std::uint32_t missing = 0;         // number of receives that have not come yet
    bool again = false;                // the ranks make the result again: the receives are inputs
    std::vector<std::uint32_t> from;   // if `again`: the ranks that send inputs, ascending
    std::vector<std::uint32_t> ranks;  // by index in `from`: how many ranks' inputs that rank sends
    std::vector<std::vector<std::byte>> inputs;
    std::vector<std::byte> sum;  // of this rank and its children: a form if the sum is exact
  };
  [[nodiscard]] Status check(std::size_t lane) const;
  [[nodiscard]] Status plan(std::uint32_t lane);
  [[nodiscard]] bool wants(const SequenceEntry& entry, const LaneMoves& moves) const noexcept;
  void pass_result(std::uint32_t lane, const SequenceEntry& entry);
  void make_again(std::uint32_t lane, const SequenceEntry& entry);
  void receive(std::uint32_t peer, std::uint64_t item, std::span<std::byte> into, bool form = false);
  void send(std::uint32_t peer, std::uint64_t item);
  void reduce(Item& item);
  void reduce_exact(Item& item);
  void flush();
  void finish_one();

  PeerMesh& mesh_;
  const std::uint32_t rank_;
  const std::uint32_t nranks_;
  const std::vector<LaneLink*> lanes_;
  Moves moves_;
  std::deque<Item> items_;                                  // in the plan's order; a deque: pointers stay valid
  std::map<std::uint32_t, std::deque<std::uint64_t>> out_;  // by peer: items that it must still get, in order
  std::function<void()> done_;
  std::uint64_t outstanding_ = 1;  // unfinished sends and receives, and start() itself: `done` comes last
  std::uint64_t moved_ = 0;
};

}  // namespace tributary::client

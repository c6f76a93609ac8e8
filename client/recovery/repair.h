#pragma once
// After a tree is lost: gives every result that some rank has to every rank that lacks it.
//
// For each lane, with lo and hi the least and the greatest number of results over all ranks: sequences below lo are
// everyone's; those from hi on are nobody's, and every rank's input for them is intact, so they are reduced by
// fallback. What lies between, at most a window, is moved here, as rank 0's plan says (repair_plan.h):
//   results for all, and one owner's data:  down the lane's tree, from ranks that have them to ranks that lack them;
//   a result for one, which that one wants: made again from everyone's inputs, up a tree to that one.
// An owner has its own data whatever it has heard, so it is not sent them.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/control/control_message.h"

namespace tributary::client {

/// This rank's answer to freeze. The lanes are frozen.
[[nodiscard]] Holdings holdings_of(const std::vector<LaneLink*>& lanes, std::uint32_t rank);

class Repair {
 public:
  /// lanes: frozen; they and their operations outlive the repair.
  Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes);

  /// Errc::corrupt if these are not moves of the state that this rank has reported: then none can be right.
  [[nodiscard]] Status start(Moves moves, std::function<void()> done);
  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent();
  /// Results of this lane below it are everyone's when the repair is done.
  [[nodiscard]] std::uint64_t everyones(std::size_t lane) const noexcept { return moves_[lane].hi; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  /// One sequence that passes through this rank.
  struct Item {
    std::uint32_t lane = 0;
    const SequenceEntry* entry = nullptr;
    const std::byte* bytes = nullptr;  // what is passed on; nullptr: not there yet
    std::uint32_t missing = 0;         // receives that it needs
    bool again = false;                // a result that is made again: the receives are inputs
    std::vector<std::uint32_t> from;   // whose, ascending; where it is made again
    std::vector<std::uint32_t> ranks;  // by `from`: how many ranks hand on by way of it
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
  std::deque<Item> items_;                                  // in their order; a place stays what it is
  std::map<std::uint32_t, std::deque<std::uint64_t>> out_;  // by peer: items that it is still to be sent, in order
  std::function<void()> done_;
  std::uint64_t outstanding_ = 1;  // start() itself holds one, so that `done` comes last
  std::uint64_t moved_ = 0;
};

}  // namespace tributary::client

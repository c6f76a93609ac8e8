#pragma once
// After a tree is lost: gives every result that some rank has to every rank that lacks it.
//
// For each lane, with lo and hi the least and the greatest number of results over all ranks: sequences below lo are
// everyone's; those from hi on are nobody's, and every rank's input for them is intact, so they are reduced by
// fallback. What lies between, at most a window, is moved here:
//   results for all:   from the lowest rank that has it to each that lacks it;
//   one owner's data:  from the owner to each that lacks it;
//   a result for one:  if that one lacks it although others heard of it, everyone sends it the input, and it reduces in
//   rank order.
// Every rank computes the same moves from the same holdings, so both ends of each channel agree on their order.
#include <cstdint>
#include <functional>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/recovery/control.h"

namespace tributary::client {

struct LaneRange {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
};
/// Errc::corrupt if ranks report different numbers of lanes, or results further apart than a window: then no moves can
/// be right.
[[nodiscard]] Result<std::vector<LaneRange>> ranges_of(const std::vector<Holdings>& by_rank, std::uint32_t window);

class Repair {
 public:
  /// lanes: frozen; they and their operations outlive the repair.
  Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes);

  [[nodiscard]] Status start(const std::vector<Holdings>& by_rank, std::function<void()> done);
  void received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void sent();
  [[nodiscard]] const std::vector<LaneRange>& ranges() const noexcept { return ranges_; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

 private:
  struct Gather {  // a result for this rank alone, made again from everyone's input
    const SequenceEntry* entry = nullptr;
    std::vector<std::vector<std::byte>> inputs;  // by rank; this rank's stays empty
    std::uint32_t missing = 0;
  };
  void move(std::uint32_t lane, const SequenceEntry& entry, const std::vector<Holdings>& by_rank);
  void move_result(std::uint32_t lane, const SequenceEntry& entry, std::uint32_t holder,
                   const std::vector<Holdings>& by_rank);
  void gather_inputs(std::uint32_t lane, const SequenceEntry& entry);
  void send_to(std::uint32_t peer, std::uint32_t lane, const SequenceEntry& entry, const std::byte* bytes);
  void receive_from(std::uint32_t peer, std::uint32_t lane, const SequenceEntry& entry, std::byte* into,
                    std::uint64_t cookie);
  void reduce(Gather& gather);
  void finish_one();

  PeerMesh& mesh_;
  const std::uint32_t rank_;
  const std::uint32_t nranks_;
  const std::vector<LaneLink*> lanes_;
  std::vector<LaneRange> ranges_;
  std::vector<Gather> gathers_;
  std::function<void()> done_;
  std::uint64_t outstanding_ = 1;  // start() itself holds one, so that `done` comes last
  std::uint64_t moved_ = 0;
};

}  // namespace tributary::client

#pragma once
// The sizes at which CollNet is quicker than the algorithms between the nodes, by libtributary's cost model.
//
// All ranks of a communicator must give NCCL the same answer, and NCCL does not compare the answers. So the model
// depends only on the call, the number of nodes and the rate of a node's link. GroupComm compares this rate over all
// nodes.
#include <cstddef>
#include <cstdint>

#include "client/plugins/nccl/abi/tuner.h"

namespace tributary::nccl {

class TunerModel {
 public:
  /// `link_rate`: the rate of each node's link, in bits per second; 0: not known.
  explicit TunerModel(std::uint64_t link_rate) noexcept : link_rate_(link_rate) {}

  /// Returns true if CollNet saves time. If the rate is not known, it must save time at each common rate of links.
  [[nodiscard]] bool prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const;
  /// Returns true if CollNet costs time even through trees that the links alone limit. If the rate is not known, it
  /// must cost time at each common rate of links. Between prefers and avoids, NCCL decides.
  [[nodiscard]] bool avoids_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const;
  [[nodiscard]] std::uint64_t link_rate() const noexcept { return link_rate_; }

 private:
  std::uint64_t link_rate_;
};

/// Returns TRIBUTARY_LINK_RATE, or the rate that the first device's driver reports; 0: not known.
[[nodiscard]] std::uint64_t link_rate_here();

}  // namespace tributary::nccl

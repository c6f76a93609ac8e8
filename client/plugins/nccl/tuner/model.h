#pragma once
// The sizes at which CollNet is quicker than what runs between the nodes, by the cost model of libtributary.
//
// All ranks of a communicator must answer NCCL alike, and NCCL does not compare the answers. So the model depends on
// nothing but the call, the number of nodes and the rate of a node's link, which GroupComm compares over all nodes.
#include <cstddef>
#include <cstdint>

#include "client/plugins/nccl/abi/tuner.h"

namespace tributary::nccl {

class TunerModel {
 public:
  /// `link_rate`: of each node's link, in bits per second; 0: not known.
  explicit TunerModel(std::uint64_t link_rate) noexcept : link_rate_(link_rate) {}

  /// Returns whether CollNet saves time. Where the rate is not known, it must do so at each rate that links have.
  [[nodiscard]] bool prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const;
  [[nodiscard]] std::uint64_t link_rate() const noexcept { return link_rate_; }

 private:
  std::uint64_t link_rate_;
};

/// Returns TRIBUTARY_LINK_RATE, or the rate that the driver of the first device tells; 0: not known.
[[nodiscard]] std::uint64_t link_rate_here();

}  // namespace tributary::nccl

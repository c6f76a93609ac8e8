#pragma once
// The forms that a lane contributes to exact sums between hosts. A form stays unchanged from its first sending until no
// rank can ask for it: it serves the aggregator, which may read it until the result comes, and recovery, which may make
// the result again (lane_link.h).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/operation/host_forms.h"
#include "tributary/kernels/pages.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class SentForms {
 public:
  explicit SentForms(const LaneDescriptor& lane) : places_(std::size_t{2} * lane.window), lane_(lane) {}
  /// Sets the transport that sends the forms.
  void use(transport::Transport& transport) noexcept { transport_ = &transport; }

  /// Makes the form of a segment, unless it was made before: the channel may take it only at a later try. Sequences
  /// come in their order, so a form replaces the form of 2 * window sequences before.
  [[nodiscard]] std::span<const std::byte> make(std::uint64_t sequence, const Operation& operation,
                                                const Segment& segment);
  /// Returns the form of one of the last 2 * window sequences.
  [[nodiscard]] std::span<const std::byte> of(std::uint64_t sequence) const noexcept;

 private:
  struct Place {
    std::uint64_t sequence = UINT64_MAX;
    std::size_t bytes = 0;
  };
  std::vector<Place> places_;
  const LaneDescriptor& lane_;
  transport::Transport* transport_ = nullptr;
  std::optional<kernels::Pages> memory_;  // made with the first form: most lanes never have one
  std::unique_ptr<transport::KeptMemory> kept_;
  HostForms forms_;
};

}  // namespace tributary::client

#pragma once
// The places where the results of a lane arrive that would overwrite their input.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tributary/kernels/pages.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class ResultStaging {
 public:
  explicit ResultStaging(const LaneDescriptor& lane)
      : lane_(lane), pages_(std::size_t{lane.window} * lane.segment_bytes) {}
  void use(transport::Transport& transport) { kept_ = transport.keep_registered(pages_.bytes()); }
  /// Says whether the channel writes results to their places as soon as they are sent. If not, all arrive in one place.
  void use(const transport::Channel& channel) { one_place_ = !channel.uses_expected_places(); }
  [[nodiscard]] std::byte* at(std::uint64_t sequence) const noexcept {
    return pages_.data() + (one_place_ ? 0 : (sequence % lane_.window) * lane_.segment_bytes);
  }

 private:
  const LaneDescriptor& lane_;
  kernels::Pages pages_;
  bool one_place_ = false;
  std::unique_ptr<transport::KeptMemory> kept_;
};

}  // namespace tributary::client

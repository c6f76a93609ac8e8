#pragma once
// The bytes of a lane's contributions that have no result yet, for the pulse of the lane: they may still be on the way.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary {

/// Counts contributions of which at most a window is under way. It allocates only in the constructor.
class BytesUnderWay {
 public:
  explicit BytesUnderWay(std::uint32_t window) : bytes_(window) {}

  void sent(std::uint64_t sequence, std::size_t bytes) noexcept {
    std::uint32_t& of = bytes_[sequence % bytes_.size()];
    TRIBUTARY_ASSERT(of == 0, "{} bytes of a contribution before {} are still under way", of, sequence);
    of = static_cast<std::uint32_t>(bytes);
    total_ += of;
  }
  void came(std::uint64_t sequence) noexcept {
    std::uint32_t& of = bytes_[sequence % bytes_.size()];
    total_ -= of;
    of = 0;
  }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

 private:
  std::vector<std::uint32_t> bytes_;  // by sequence mod window; 0: nothing is under way
  std::uint64_t total_ = 0;
};

}  // namespace tributary

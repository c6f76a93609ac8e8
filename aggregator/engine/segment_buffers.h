#pragma once
// The buffers of a lane, each as long as a segment. The buffer that was given back last is taken first, because it is
// probably still in the processor's cache: a lane with few segments in flight then uses the same few buffers again and
// again, however many it has.
#include <cstddef>
#include <span>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::engine {

class SegmentBuffers {
 public:
  /// Divides the first `bytes` of `memory`, which must outlive this, into buffers of `buffer_bytes` each.
  SegmentBuffers(std::span<std::byte> memory, std::size_t bytes, std::size_t buffer_bytes) {
    TRIBUTARY_ASSERT(memory.size() >= bytes, "a lane of {} bytes gets {} bytes", bytes, memory.size());
    TRIBUTARY_ASSERT(buffer_bytes > 0 && bytes % buffer_bytes == 0, "{} bytes are divided into buffers of {}", bytes,
                     buffer_bytes);
    memory_ = memory.first(bytes);
    count_ = bytes / buffer_bytes;
    free_.reserve(count_);
    for (std::size_t i = count_; i > 0; --i) free_.push_back(memory_.data() + (i - 1) * buffer_bytes);
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  [[nodiscard]] std::byte* take() noexcept {
    TRIBUTARY_ASSERT(!free_.empty(), "all {} buffers of a lane are in use", count_);
    std::byte* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void give_back(std::byte* buffer) noexcept {
    TRIBUTARY_ASSERT(buffer >= memory_.data() && buffer < memory_.data() + memory_.size() && free_.size() < count_,
                     "a buffer comes back that is not one of the lane's {}, of which {} are free", count_,
                     free_.size());
    free_.push_back(buffer);  // the constructor has reserved the room
  }

 private:
  std::span<std::byte> memory_;
  std::size_t count_ = 0;
  std::vector<std::byte*> free_;
};

}  // namespace tributary::engine

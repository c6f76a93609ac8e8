#pragma once
// The buffers of a lane, each as long as a segment. The buffer that was given back last is taken first, because it is
// probably still in the processor's cache: a lane with few segments in flight then uses the same few buffers again and
// again, however many it has.
//
// Buffers that other cores have read where they lie are the exception. Their lines are also in the caches of those
// cores, and each write would first have to take a line away from there: a sum of 64 KiB then took 6.7 us in place of
// 2.6. So such a buffer rests until other results have pushed it out of the readers' caches.
#include <algorithm>
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
    resting_.resize(count_);
    at_rest_min_ = std::clamp<std::size_t>(kRestBytes / buffer_bytes, 1, count_);
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  [[nodiscard]] std::byte* take() noexcept {
    TRIBUTARY_ASSERT(!free_.empty() || at_rest_ > 0, "all {} buffers of a lane are in use", count_);
    if (free_.empty()) return take_rested();
    std::byte* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  /// Takes a buffer for bytes that other cores will read there.
  [[nodiscard]] std::byte* take_for_readers() noexcept { return at_rest_ >= at_rest_min_ ? take_rested() : take(); }
  void give_back(std::byte* buffer) noexcept {
    check(buffer);
    free_.push_back(buffer);  // the constructor has reserved the room
  }
  /// Gives back a buffer that other cores have read.
  void give_back_from_readers(std::byte* buffer) noexcept {
    check(buffer);
    resting_[(oldest_ + at_rest_) % count_] = buffer;
    ++at_rest_;
  }

 private:
  // The second cache of a core has about this size. With half as many bytes, a call of 64 KiB took 1.4 us longer; with
  // twice as many, it was no faster.
  static constexpr std::size_t kRestBytes = std::size_t{1} << 20;

  void check(const std::byte* buffer) const noexcept {
    TRIBUTARY_ASSERT(
        buffer >= memory_.data() && buffer < memory_.data() + memory_.size() && free_.size() + at_rest_ < count_,
        "a buffer comes back that is not one of the lane's {}, of which {} are free and {} rest", count_, free_.size(),
        at_rest_);
  }
  [[nodiscard]] std::byte* take_rested() noexcept {
    std::byte* const taken = resting_[oldest_];
    oldest_ = (oldest_ + 1) % count_;
    --at_rest_;
    return taken;
  }

  std::span<std::byte> memory_;
  std::size_t count_ = 0;
  std::vector<std::byte*> free_;
  std::vector<std::byte*> resting_;  // a ring of count_ places; the buffers that rest begin at oldest_
  std::size_t oldest_ = 0;
  std::size_t at_rest_ = 0;      // number of buffers that rest
  std::size_t at_rest_min_ = 1;  // number of buffers that must rest before the oldest is taken
};

}  // namespace tributary::engine

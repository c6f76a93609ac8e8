#pragma once
// What a lane needs of one GPU, or the like, for operations whose buffers lie there: the places where results arrive
// that will overwrite their input, and those where the last window of what recovery may ask for is kept. Both are the
// GPU's own memory, as the lane's `staging` and `retained` are the host's.
//
// A place is used again a window later. What is kept is overwritten by the next copy to it, and copies keep their
// order. But the network writes without asking: a place where a result arrives is free only when the copy out of it has
// ended (place_free()), and until then the segment that would use it is not contributed.
#include <atomic>
#include <memory>
#include <vector>

#include "client/operation/direct_memory.h"

namespace tributary::client {

class DirectLane {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DirectLane>> make(transport::Transport& transport,
                                                                std::shared_ptr<DirectDevice> device,
                                                                std::uint32_t window, std::uint32_t segment_bytes);

  [[nodiscard]] DirectDevice& device() const noexcept { return *state_->device; }
  /// Of results that arrive.
  [[nodiscard]] std::span<const std::byte> places() const noexcept { return {at(0), places_bytes()}; }
  [[nodiscard]] std::byte* place(std::uint64_t sequence) const noexcept { return at(sequence % window_); }
  /// False: not now; the device wakes the communicator when it is.
  [[nodiscard]] bool place_free(std::uint64_t sequence) const noexcept;
  /// The result of this sequence lies in its place, and belongs there.
  void bring(std::uint64_t sequence, std::byte* to, std::size_t bytes);
  void retain(std::uint64_t sequence, const std::byte* from, std::size_t bytes);
  /// What was retained, to the host. `done` on any thread; the device wakes the communicator then.
  void bring_down(std::uint64_t sequence, std::byte* to, std::size_t bytes, std::function<void()> done);

 private:
  /// Outlives the lane while copies are under way.
  struct State {
    std::shared_ptr<DirectDevice> device;
    std::shared_ptr<DirectBlock> block;
    std::vector<std::atomic<bool>> busy;  // by place
    std::atomic<bool> waited_for = false;
  };
  DirectLane(std::shared_ptr<State> state, std::uint32_t window, std::uint32_t segment_bytes) noexcept
      : state_(std::move(state)), window_(window), segment_bytes_(segment_bytes) {}
  [[nodiscard]] std::size_t places_bytes() const noexcept { return std::size_t{window_} * segment_bytes_; }
  [[nodiscard]] std::byte* at(std::uint64_t index) const noexcept {
    return state_->block->memory().data() + index * segment_bytes_;
  }
  [[nodiscard]] std::byte* kept(std::uint64_t sequence) const noexcept { return at(window_ + sequence % window_); }

  const std::shared_ptr<State> state_;
  const std::uint32_t window_;
  const std::uint32_t segment_bytes_;
};

}  // namespace tributary::client

#pragma once
// A lane's memory for operations whose buffers lie in one GPU, or a similar device. It has places for arriving results
// that will overwrite their input, and places that keep the last window of data that recovery may ask for. Both kinds
// of places are in the GPU's own memory, as the lane's `staging` and `retained` are in the host's memory.
//
// The segment one window later uses the same place again. For retained data this is safe: copies keep their order. But
// the network writes at any time: a place for results is free only when the copy out of it has ended (place_free()).
// Until then the lane does not contribute the next segment that uses the place.
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
  /// Returns the memory of all places where results arrive.
  [[nodiscard]] std::span<const std::byte> places() const noexcept { return {at(0), places_bytes()}; }
  [[nodiscard]] std::byte* place(std::uint64_t sequence) const noexcept { return at(sequence % window_); }
  /// True if the place is free. If not, the device wakes the communicator when it becomes free.
  [[nodiscard]] bool place_free(std::uint64_t sequence) const noexcept;
  /// Copies the result of this sequence from its place to `to`.
  void bring(std::uint64_t sequence, std::byte* to, std::size_t bytes);
  void retain(std::uint64_t sequence, const std::byte* from, std::size_t bytes);
  /// Copies retained data to the host. Calls `done` on any thread; the device wakes the communicator then.
  void bring_down(std::uint64_t sequence, std::byte* to, std::size_t bytes, std::function<void()> done);

 private:
  /// Outlives the lane while copies are under way.
  struct State {
    std::shared_ptr<DirectDevice> device;
    std::shared_ptr<DirectBlock> block;
    std::vector<std::atomic<bool>> busy;  // by place: a copy out of it is under way
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

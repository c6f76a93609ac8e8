#include "client/collectives/in_network/direct_lane.h"

namespace tributary::client {

Result<std::unique_ptr<DirectLane>> DirectLane::make(transport::Transport& transport,
                                                     std::shared_ptr<DirectDevice> device, std::uint32_t window,
                                                     std::uint32_t segment_bytes) {
  auto block = device->allocate(transport, std::size_t{2} * window * segment_bytes);
  if (!block) return std::unexpected(block.error());
  auto state = std::make_shared<State>();
  state->device = std::move(device);
  state->block = std::move(*block);
  state->busy = std::vector<std::atomic<bool>>(window);
  return std::unique_ptr<DirectLane>(new DirectLane(std::move(state), window, segment_bytes));
}

// Misses no wake-up: the end of a copy first frees the place, and then looks whether a thread waits for the place. A
// thread first announces that it waits, and then looks at the place again.
bool DirectLane::place_free(std::uint64_t sequence) const noexcept {
  const std::atomic<bool>& busy = state_->busy[sequence % window_];
  if (!busy.load(std::memory_order_acquire)) return true;
  state_->waited_for.store(true);
  return !busy.load();
}

void DirectLane::bring(std::uint64_t sequence, std::byte* to, std::size_t bytes) {
  const std::size_t index = sequence % window_;
  state_->busy[index].store(true, std::memory_order_relaxed);
  state_->device->copy(to, at(index), bytes, [state = state_, index] {
    state->busy[index].store(false);
    if (state->waited_for.exchange(false)) state->device->wake();
  });
}

void DirectLane::retain(std::uint64_t sequence, const std::byte* from, std::size_t bytes) {
  state_->device->copy(kept(sequence), from, bytes, [state = state_] {});
}

void DirectLane::bring_down(std::uint64_t sequence, std::byte* to, std::size_t bytes, std::function<void()> done) {
  state_->device->copy(to, kept(sequence), bytes, [state = state_, done = std::move(done)] {
    done();
    state->device->wake();
  });
}

}  // namespace tributary::client

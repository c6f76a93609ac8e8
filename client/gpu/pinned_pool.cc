#include "client/gpu/pinned_pool.h"

#include <algorithm>
#include <bit>

#include "tributary/protocol/assert.h"

namespace tributary::client::gpu {
namespace {

constexpr std::size_t kBlockBytesMin = std::size_t{64} << 10;
// The step for larger blocks: sizes are rounded up to multiples of it. Powers of two could waste half a gigabyte.
constexpr std::size_t kLargeStep = std::size_t{16} << 20;

std::size_t capacity_for(std::size_t bytes) {
  if (bytes <= kBlockBytesMin) return kBlockBytesMin;
  if (bytes <= kLargeStep) return std::bit_ceil(bytes);
  return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
}

}  // namespace

PinnedPool::~PinnedPool() {
  for (const Idle& block : idle_) free(block.data);
}

Result<std::shared_ptr<PinnedPool::Block>> PinnedPool::take(std::size_t bytes) {
  const std::size_t capacity = capacity_for(bytes);
  std::byte* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find(idle_, capacity, &Idle::capacity);
    if (fits != idle_.end()) {
      TRIBUTARY_ASSERT(capacity <= idle_bytes_, "a block of {} bytes is idle, of {}", capacity, idle_bytes_);
      data = fits->data;
      idle_bytes_ -= capacity;
      idle_.erase(fits);
    }
  }
  if (data == nullptr) {
    auto allocated = allocate(capacity);
    if (!allocated) return std::unexpected(allocated.error());
    data = *allocated;
  }
  count_use(capacity);
  return std::make_shared<Block>(shared_from_this(), data, capacity);
}

Result<std::byte*> PinnedPool::allocate(std::size_t capacity) {
  void* memory = nullptr;
  {
    const Context::Current current(*context_);
    CudaResult result = current.result();
    if (result == CudaResult::success) result = context_->driver().host_allocate(memory, capacity);
    if (result != CudaResult::success) {
      Error error = cuda_error(context_->driver(), result,
                               "pinning " + std::to_string(capacity) + " bytes of host memory for data of GPU " +
                                   std::to_string(context_->device()));
      if (error.code == Errc::exhausted) error.message += "; wait for operations that are under way, or call with less";
      return std::unexpected(std::move(error));
    }
  }
  auto* const data = static_cast<std::byte*>(memory);
  if (auto kept = keep_ ? keep_({data, capacity}) : nullptr) {
    const std::lock_guard lock(mutex_);
    kept_.emplace(data, std::move(kept));
  }
  return data;
}

void PinnedPool::count_use(std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  if (takes_ == kRecentTakes) {
    last_peak_ = peak_;
    peak_ = 0;
    takes_ = 0;
  }
  ++takes_;
  used_bytes_ += capacity;
  peak_ = std::max(peak_, used_bytes_);
}

// Keeps what the recent calls used at once: to pin memory costs more than the copies that use it, so a job whose calls
// all use more than kIdleBytes must not pin its memory again for each call.
std::size_t PinnedPool::idle_bytes_max() const noexcept {
  const std::size_t recent = std::max(peak_, last_peak_);
  return std::max(kIdleBytes, recent - std::min(recent, used_bytes_));
}

void PinnedPool::take_back(std::byte* data, std::size_t capacity) {
  std::vector<Idle> gone;
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back({data, capacity});
    idle_bytes_ += capacity;
    TRIBUTARY_ASSERT(capacity <= used_bytes_, "a block of {} bytes comes back, but {} are in use", capacity,
                     used_bytes_);
    used_bytes_ -= capacity;
    while (idle_bytes_ > idle_bytes_max()) {
      TRIBUTARY_ASSERT(!idle_.empty(), "{} bytes are idle, in no block", idle_bytes_);
      gone.push_back(idle_.front());
      idle_bytes_ -= idle_.front().capacity;
      idle_.erase(idle_.begin());
    }
  }
  for (const Idle& block : gone) free(block.data);
}

// Frees a block. Ignores errors, because a lost context has already freed its memory.
void PinnedPool::free(std::byte* data) {
  std::unique_ptr<transport::KeptMemory> kept;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = kept_.find(data); at != kept_.end()) {
      kept = std::move(at->second);
      kept_.erase(at);
    }
  }
  kept.reset();  // the registration must end before the memory is freed
  const Context::Current current(*context_);
  if (current.result() == CudaResult::success) context_->driver().host_free(data);
}

std::size_t PinnedPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

}  // namespace tributary::client::gpu

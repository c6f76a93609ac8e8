#include "transport/shm/lent_memory.h"

#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

bool LentRange::holds(std::span<const std::byte> payload, std::uint64_t& offset) const noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(payload.data());
  const auto at = reinterpret_cast<std::uintptr_t>(address_);
  if (begin < at || begin - at > bytes_ || payload.size() > bytes_ - (begin - at)) return false;
  offset = begin - at;
  return true;
}

void LentRange::withdraw() noexcept {
  const std::lock_guard lock(mutex_);
  withdrawn_.store(true, std::memory_order_release);
  range_ = {};
}

bool LentRange::pass(int socket) const noexcept {
  const std::byte bell{1};
  const std::lock_guard lock(mutex_);
  return range_.file.is_open() && send_message(socket, std::span(&bell, 1), range_.file.get());
}

std::shared_ptr<LentRange> LentMemory::lend(const std::byte* address, SharedRange range) {
  auto lent = std::make_shared<LentRange>(address, std::move(range));
  const std::lock_guard lock(mutex_);
  ranges_.push_back(lent);
  count_.store(ranges_.size(), std::memory_order_relaxed);
  return lent;
}

void LentMemory::withdraw(const std::shared_ptr<LentRange>& range) noexcept {
  range->withdraw();
  const std::lock_guard lock(mutex_);
  const std::size_t erased = std::erase(ranges_, range);
  TRIBUTARY_ASSERT(erased == 1, "a lent range is taken back, and known {} times", erased);
  count_.store(ranges_.size(), std::memory_order_relaxed);
}

std::shared_ptr<LentRange> LentMemory::find(std::span<const std::byte> payload) const noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  std::uint64_t offset = 0;
  for (const auto& range : ranges_) {
    if (range->holds(payload, offset)) return range;
  }
  return nullptr;
}

}  // namespace tributary::transport

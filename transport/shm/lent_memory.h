#pragma once
// Memory of this process that peers on this host may read in place.
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

/// One lent range. Any thread may call it.
class LentRange {
 public:
  LentRange(const std::byte* address, SharedRange range) noexcept
      : address_(address), bytes_(range.bytes), offset_(range.offset), range_(std::move(range)) {}
  LentRange(const LentRange&) = delete;
  LentRange& operator=(const LentRange&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The offset of the range's first byte in the file.
  [[nodiscard]] std::uint64_t file_offset() const noexcept { return offset_; }
  /// True if the payload lies in the range; `offset` then becomes the payload's offset there.
  [[nodiscard]] bool holds(std::span<const std::byte> payload, std::uint64_t& offset) const noexcept;
  [[nodiscard]] bool withdrawn() const noexcept { return withdrawn_.load(std::memory_order_acquire); }
  /// Gives the file back: from here on send() passes it to no peer.
  void withdraw() noexcept;
  /// Sends a byte and the file's descriptor. Returns false if the socket has no room, or the range was withdrawn.
  [[nodiscard]] bool pass(int socket) const noexcept;

 private:
  const std::byte* const address_;
  const std::size_t bytes_;
  const std::uint64_t offset_;
  std::atomic<bool> withdrawn_{false};
  mutable std::mutex mutex_;
  SharedRange range_;  // guarded by mutex_
};

/// All lent ranges of one transport. Any thread may call it.
class LentMemory {
 public:
  [[nodiscard]] std::shared_ptr<LentRange> lend(const std::byte* address, SharedRange range);
  void withdraw(const std::shared_ptr<LentRange>& range) noexcept;
  /// Finds the range that holds the payload. Returns nullptr if no range holds it.
  [[nodiscard]] std::shared_ptr<LentRange> find(std::span<const std::byte> payload) const noexcept;

 private:
  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<LentRange>> ranges_;  // guarded by mutex_
};

}  // namespace tributary::transport

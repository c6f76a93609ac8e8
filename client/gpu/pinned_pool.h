#pragma once
// A pool of pinned host memory in blocks. It uses blocks again, because the kernel needs milliseconds to pin memory. A
// block has no second user while a copy may still touch it: every copy holds its block.
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/gpu/context.h"
#include "tributary/transport/channel.h"

namespace tributary::client::gpu {

class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  /// The pool keeps idle blocks up to this sum, or up to what its recent calls used at once, if that is more. It gives
  /// other idle blocks back to the system.
  static constexpr std::size_t kIdleBytes = std::size_t{256} << 20;
  /// Recent calls are the last 32 to 64 calls of take(): after that a large call of long ago holds no memory.
  static constexpr std::size_t kRecentTakes = 32;
  /// Registers a block with the communicator's transport as long as the block exists; may return nullptr.
  using Keep = std::function<std::unique_ptr<transport::KeptMemory>(std::span<const std::byte>)>;

  PinnedPool(std::shared_ptr<Context> context, Keep keep) : context_(std::move(context)), keep_(std::move(keep)) {}
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  ~PinnedPool();

  class Block {
   public:
    Block(std::shared_ptr<PinnedPool> pool, std::byte* data, std::size_t capacity)
        : pool_(std::move(pool)), data_(data), capacity_(capacity) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { pool_->take_back(data_, capacity_); }
    [[nodiscard]] std::byte* data() const noexcept { return data_; }

   private:
    std::shared_ptr<PinnedPool> pool_;
    std::byte* data_;
    std::size_t capacity_;
  };

  /// Returns a block of at least `bytes` at the start of a page. Errc::exhausted: the system cannot pin more memory.
  [[nodiscard]] Result<std::shared_ptr<Block>> take(std::size_t bytes);
  [[nodiscard]] std::size_t idle_bytes() const;

 private:
  struct Idle {
    std::byte* data;
    std::size_t capacity;
  };
  void take_back(std::byte* data, std::size_t capacity);
  void count_use(std::size_t capacity);
  [[nodiscard]] std::size_t idle_bytes_max() const noexcept;
  void free(std::byte* data);
  [[nodiscard]] Result<std::byte*> allocate(std::size_t capacity);

  const std::shared_ptr<Context> context_;
  const Keep keep_;
  mutable std::mutex mutex_;
  std::vector<Idle> idle_;  // oldest first
  std::size_t idle_bytes_ = 0;
  std::size_t used_bytes_ = 0;  // bytes of all blocks that are not idle
  std::size_t peak_ = 0;        // the greatest used_bytes_ since takes_ was 0
  std::size_t last_peak_ = 0;   // the greatest used_bytes_ in the kRecentTakes calls before that
  std::size_t takes_ = 0;
  std::map<std::byte*, std::unique_ptr<transport::KeptMemory>> kept_;
};

}  // namespace tributary::client::gpu

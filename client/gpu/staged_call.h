#pragma once
// One call whose buffers are in GPU memory and whose data pass through pinned host memory. Some chunks are copied down
// to the host while others are reduced in the network or copied up to the GPU. The rest of the client sees host memory.
//
// Ownership: the caller's buffers belong to the library until the request is done. The request is done only when all
// copies have ended, even after an error. Every copy holds the call, and the call holds its pinned blocks, so that the
// pool cannot use a block again too soon.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/gpu/copy_line.h"
#include "client/gpu/pinned_pool.h"
#include "client/operation/staged_memory.h"

namespace tributary::client::gpu {

/// The buffers of a call. A buffer that the call does not use has 0 bytes.
struct CallBuffers {
  const std::byte* send = nullptr;
  std::size_t send_bytes = 0;
  std::byte* recv = nullptr;
  std::size_t recv_bytes = 0;
  bool in_place = false;  // one buffer lies in the other buffer
};

/// The copies between one GPU and the host.
struct CopyLines {
  CopyLine* down;
  CopyLine* up;
  int device;
  bool flush = false;  // flush before the first copy down
};

class StagedCall final : public StagedMemory, public std::enable_shared_from_this<StagedCall> {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  using Blocks = std::vector<std::shared_ptr<void>>;
  struct Hooks {
    std::function<void()> arrived;             // called when more of the input has come; any thread
    std::function<void(const Error&)> failed;  // called if the input cannot come; any thread, at most once
  };

  /// `caller`: the caller's buffers; send is in a GPU if `from` is set, recv if `to` is set. `host`: buffers in host
  /// memory for the same data.
  StagedCall(const CallBuffers& caller, const CallBuffers& host, std::optional<CopyLines> from,
             std::optional<CopyLines> to, Blocks blocks, Hooks hooks);

  /// Returns the buffers in host memory, which the network uses.
  [[nodiscard]] const CallBuffers& host() const noexcept { return host_; }

  /// Begins to copy the input down. If `with_results`, first copies down the results that the result's buffer has. Does
  /// nothing if finish() was called already.
  void begin(bool with_results = false);
  /// Copies the input down, and waits until the copies have ended.
  [[nodiscard]] Status download();
  /// Takes the operation's `outcome`. If it is success, copies the rest of the result up. Calls `done`, on any thread,
  /// when all copies have ended.
  void finish(const Status& outcome, std::function<void(const Status&)> done);
  /// Takes the operation's `outcome` in the same way, and waits until all copies have ended.
  [[nodiscard]] Status finish(const Status& outcome);

  [[nodiscard]] bool input_ready(const std::byte* end) const noexcept override {
    return end <= host_.send + ready_.load(std::memory_order_acquire);  // pairs with arrived()
  }
  [[nodiscard]] bool input_whole() const noexcept override {
    return ready_.load(std::memory_order_acquire) == host_.send_bytes &&
           results_coming_.load(std::memory_order_acquire) == 0;
  }
  void result_landed(std::span<const std::byte> part) override;
  /// Returns the rate of the slower of the two lines.
  [[nodiscard]] double copy_rate() const noexcept override;
  [[nodiscard]] std::size_t result_left() const noexcept override;

 private:
  void begin_copy(const std::byte* from, std::byte* to, std::size_t bytes, bool flush, bool input);
  void arrived(std::size_t bytes, bool input, const Status& status);
  void upload(std::size_t chunk);
  void ended(const Status& status, std::unique_lock<std::mutex> lock);
  [[nodiscard]] std::size_t chunk_bytes(std::size_t chunk) const noexcept;

  const CallBuffers caller_;
  const CallBuffers host_;
  const std::optional<CopyLines> from_, to_;
  const Blocks blocks_;
  const Hooks hooks_;
  std::atomic<std::size_t> ready_;              // bytes at the start of the input that have come
  std::atomic<std::size_t> results_coming_{0};  // bytes of results that have not come down yet
  // The number of bytes that have landed in each chunk of the result. Only the communicator's thread uses it.
  std::vector<std::size_t> landed_;
  std::atomic<std::size_t> arrived_up_{0};  // bytes of the result that have come to the GPU
  std::vector<bool> gone_up_;               // by chunk: its copy up has begun; only the communicator's thread uses it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t copies_ = 0;                   // guarded by mutex_: copies that have not ended
  Status outcome_;                           // guarded by mutex_: the first error
  bool finished_ = false;                    // guarded by mutex_
  std::function<void(const Status&)> done_;  // guarded by mutex_
};

}  // namespace tributary::client::gpu

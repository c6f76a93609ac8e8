#pragma once
// One call whose buffers are in GPU memory, by way of pinned host memory: chunks come down while others are reduced in
// the network, and others go up again. What the rest of the client sees is host memory.
//
// Who owns what: the caller's buffers are ours until the request is done, which it becomes only when no copy touches
// them any more, after an error as well. Every copy holds the call, and the call its pinned blocks, so that no block is
// used again too soon.
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

/// What a call reads and writes. Bytes are 0 of a buffer that it does not use.
struct CallBuffers {
  const std::byte* send = nullptr;
  std::size_t send_bytes = 0;
  std::byte* recv = nullptr;
  std::size_t recv_bytes = 0;
  bool in_place = false;  // one lies in the other
};

/// The copies between one GPU and the host.
struct CopyLines {
  CopyLine* down;
  CopyLine* up;
  int device;
  bool flush = false;  // before the first that comes down
};

class StagedCall final : public StagedMemory, public std::enable_shared_from_this<StagedCall> {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  using Blocks = std::vector<std::shared_ptr<void>>;
  struct Hooks {
    std::function<void()> arrived;             // more of the input is there; any thread
    std::function<void(const Error&)> failed;  // the input will not come; any thread, at most once
  };

  /// `caller`: with device addresses where `from` or `to` is set. `host`: the same in host memory, all of it.
  StagedCall(const CallBuffers& caller, const CallBuffers& host, std::optional<CopyLines> from,
             std::optional<CopyLines> to, Blocks blocks, Hooks hooks);

  /// What the network shall use.
  [[nodiscard]] const CallBuffers& host() const noexcept { return host_; }

  /// Begins to copy the input down; before it, `with_results`, what the result's memory holds. Nothing happens where it
  /// was finished already.
  void begin(bool with_results = false);
  /// Copies it down, and waits for it.
  [[nodiscard]] Status download();
  /// The operation has ended with `outcome`; `done`, on any thread, when no copy is left: what is left of the result
  /// has gone up if the outcome is good.
  void finish(const Status& outcome, std::function<void(const Status&)> done);
  /// The same, waiting.
  [[nodiscard]] Status finish(const Status& outcome);

  [[nodiscard]] bool input_ready(const std::byte* end) const noexcept override {
    return end <= host_.send + ready_.load(std::memory_order_acquire);  // pairs with arrived()
  }
  [[nodiscard]] bool input_whole() const noexcept override {
    return ready_.load(std::memory_order_acquire) == host_.send_bytes &&
           results_coming_.load(std::memory_order_acquire) == 0;
  }
  void result_landed(std::span<const std::byte> part) override;

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
  std::atomic<std::size_t> ready_;              // bytes of the input, from its beginning
  std::atomic<std::size_t> results_coming_{0};  // bytes that begin() was to bring down, too
  std::vector<std::size_t> landed_;             // by chunk of the result: bytes; on the communicator's thread
  std::vector<bool> gone_up_;                   // by chunk; likewise
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t copies_ = 0;                   // under mutex_: that have not ended
  Status outcome_;                           // under mutex_: the first error
  bool finished_ = false;                    // under mutex_
  std::function<void(const Status&)> done_;  // under mutex_
};

}  // namespace tributary::client::gpu

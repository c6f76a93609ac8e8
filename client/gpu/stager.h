#pragma once
// One communicator's way between GPU memory and the network: the streams, threads and pinned memory of each GPU that
// its calls use, made when the first of them comes.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/gpu/direct_call.h"
#include "client/gpu/gpu_memory.h"
#include "client/gpu/staged_call.h"

namespace tributary::client::gpu {

class Stager {
 public:
  struct Hooks {
    StagedCall::Hooks call;
    PinnedPool::Keep keep;
    /// Of a GPU, before its streams are made: how the network gets at its memory. Empty: by staging.
    std::function<PathChoice(CudaDriver& driver, int device)> choose;
    std::function<void(const std::string&)> tell;  // a line for the log
  };
  /// What is smaller travels in messages, which the processor writes, or in a segment or two.
  static constexpr std::size_t kDirectBytesMin = std::size_t{64} << 10;

  explicit Stager(Hooks hooks) : hooks_(std::move(hooks)) {}
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;
  /// After all copies.
  ~Stager() = default;

  /// nullptr: all of it is host memory. Else a call to begin(). Any thread.
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage(const CallBuffers& buffers);
  /// nullptr: it has to be staged, if it is a GPU's memory at all. Any thread.
  [[nodiscard]] Result<std::shared_ptr<DirectCall>> direct(const CallBuffers& buffers);
  /// The caller says that it will not use this any more: what is registered of it goes. Any thread.
  void forget(std::span<const std::byte> memory);
  /// Makes ready what calls with memory of this GPU need. Any thread.
  [[nodiscard]] Status prepare(int device);
  /// Until no copy is under way that was begun before. Any thread but those that copy.
  void drain();

 private:
  struct Gpu {
    std::shared_ptr<Context> context;
    std::shared_ptr<PinnedPool> pool;
    std::unique_ptr<CopyLine> down, up;
    std::shared_ptr<GpuMemory> memory;  // nullptr: everything is staged
  };
  [[nodiscard]] Result<Gpu*> gpu(int device);
  [[nodiscard]] Result<Gpu> open(int device) const;
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage_direct(Gpu& gpu, const CallBuffers& buffers) const;
  [[nodiscard]] static CopyLines lines_of(Gpu& gpu) noexcept {
    return {gpu.down.get(), gpu.up.get(), gpu.context->device()};
  }

  const Hooks hooks_;
  std::mutex mutex_;
  std::map<int, Gpu> gpus_;  // under mutex_; its members, once made, are any thread's
};

}  // namespace tributary::client::gpu

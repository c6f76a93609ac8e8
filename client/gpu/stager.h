#pragma once
// Moves the data of one communicator's calls between GPU memory and the network. It has the streams, threads and pinned
// memory of each GPU, and makes them for the first call that uses this GPU.
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
    /// Chooses, before a GPU's streams are made, the way in which the network reaches its memory. No function: staging.
    std::function<PathChoice(CudaDriver& driver, int device)> choose;
    std::function<void(const std::string&)> tell;  // gets a line for the log
  };
  /// The least bytes of a direct call. Smaller data go staged: they travel in one or two segments, or in messages that
  /// the processor writes.
  static constexpr std::size_t kDirectBytesMin = std::size_t{64} << 10;

  explicit Stager(Hooks hooks) : hooks_(std::move(hooks)) {}
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;
  /// Waits for all copies.
  ~Stager() { drain(); }

  /// Returns a call, whose begin() the caller must call; nullptr: all buffers are in host memory. Any thread may call
  /// it.
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage(const CallBuffers& buffers);
  /// Returns a direct call; nullptr if the call cannot go direct: the caller then calls stage(). Any thread may call
  /// it.
  [[nodiscard]] Result<std::shared_ptr<DirectCall>> direct(const CallBuffers& buffers);
  /// Ends the registrations of memory that the caller will not use again. Any thread may call it.
  void forget(std::span<const std::byte> memory);
  /// Prepares the streams and threads that calls with memory of this GPU need. Any thread may call it.
  [[nodiscard]] Status prepare(int device);
  /// Waits until all copies that have begun have ended. Any thread except the threads of copy lines.
  void drain();

 private:
  struct Gpu {
    std::shared_ptr<Context> context;
    std::shared_ptr<PinnedPool> pool;
    std::unique_ptr<CopyLine> down, up;
    std::shared_ptr<GpuMemory> memory;  // nullptr: all calls are staged
  };
  [[nodiscard]] Result<Gpu*> gpu(int device);
  [[nodiscard]] Result<Gpu> open(int device) const;
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage_direct(Gpu& gpu, const CallBuffers& buffers) const;
  [[nodiscard]] static CopyLines lines_of(Gpu& gpu) noexcept {
    return {gpu.down.get(), gpu.up.get(), gpu.context->device()};
  }

  const Hooks hooks_;
  std::mutex mutex_;
  std::map<int, Gpu> gpus_;  // guarded by mutex_; any thread may use the members of an entry
};

}  // namespace tributary::client::gpu

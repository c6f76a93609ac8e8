#pragma once
// Takes the calls of one communicator between GPU memory and the network: has the streams, threads and pinned memory of
// each GPU that calls use, which it makes for the first such call.
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
    /// Chooses, before a GPU's streams are made, how the network reaches its memory. Empty: staging.
    std::function<PathChoice(CudaDriver& driver, int device)> choose;
    std::function<void(const std::string&)> tell;  // a line for the log
  };
  /// Smaller data go staged: they travel in messages, which the processor writes, or in a segment or two.
  static constexpr std::size_t kDirectBytesMin = std::size_t{64} << 10;

  explicit Stager(Hooks hooks) : hooks_(std::move(hooks)) {}
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;
  /// Waits for all copies.
  ~Stager() { drain(); }

  /// Returns a call for the caller to begin(); nullptr: all buffers are in host memory. Any thread.
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage(const CallBuffers& buffers);
  /// Returns nullptr if the call cannot go direct: then stage() decides. Any thread.
  [[nodiscard]] Result<std::shared_ptr<DirectCall>> direct(const CallBuffers& buffers);
  /// Ends the registrations of memory that the caller will not use any more. Any thread.
  void forget(std::span<const std::byte> memory);
  /// Prepares the streams and threads that calls with memory of this GPU need. Any thread.
  [[nodiscard]] Status prepare(int device);
  /// Waits until every copy begun before has ended. Any thread except those that copy.
  void drain();

 private:
  struct Gpu {
    std::shared_ptr<Context> context;
    std::shared_ptr<PinnedPool> pool;
    std::unique_ptr<CopyLine> down, up;
    std::shared_ptr<GpuMemory> memory;  // nullptr: all data are staged
  };
  [[nodiscard]] Result<Gpu*> gpu(int device);
  [[nodiscard]] Result<Gpu> open(int device) const;
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage_direct(Gpu& gpu, const CallBuffers& buffers) const;
  [[nodiscard]] static CopyLines lines_of(Gpu& gpu) noexcept {
    return {gpu.down.get(), gpu.up.get(), gpu.context->device()};
  }

  const Hooks hooks_;
  std::mutex mutex_;
  std::map<int, Gpu> gpus_;  // under mutex_; once made, any thread may use its members
};

}  // namespace tributary::client::gpu

#pragma once
// One communicator's way between GPU memory and the network: the streams, threads and pinned memory of each GPU that
// its calls use, made when the first of them comes.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/gpu/staged_call.h"

namespace tributary::client::gpu {

class Stager {
 public:
  struct Hooks {
    StagedCall::Hooks call;
    PinnedPool::Keep keep;
    std::function<void(CudaDriver& driver, int device)> first_use;  // of a GPU, before its streams are made
  };
  explicit Stager(Hooks hooks) : hooks_(std::move(hooks)) {}
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;
  /// After all copies.
  ~Stager() = default;

  /// nullptr: all of it is host memory. Else a call to begin(). Any thread.
  [[nodiscard]] Result<std::shared_ptr<StagedCall>> stage(const CallBuffers& buffers);
  /// Makes ready what calls with memory of this GPU need. Any thread.
  [[nodiscard]] Status prepare(int device);
  /// Until no copy is under way that was begun before. Any thread but those that copy.
  void drain();

 private:
  struct Gpu {
    std::shared_ptr<Context> context;
    std::shared_ptr<PinnedPool> pool;
    std::unique_ptr<CopyLine> down, up;
  };
  [[nodiscard]] Result<Gpu*> gpu(int device);
  [[nodiscard]] Result<Gpu> open(int device) const;
  [[nodiscard]] static CopyLines lines_of(Gpu& gpu) noexcept {
    return {gpu.down.get(), gpu.up.get(), gpu.context->device()};
  }

  const Hooks hooks_;
  std::mutex mutex_;
  std::map<int, Gpu> gpus_;  // under mutex_; its members, once made, are any thread's
};

}  // namespace tributary::client::gpu

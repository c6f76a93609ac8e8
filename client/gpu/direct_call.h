#pragma once
// One call whose buffers are in a GPU's memory and stay there: the network reads and writes them. If that becomes
// impossible, the call goes on as a StagedCall, and keeps the results that it has.
//
// The caller's buffers belong to the library until the request is done. The request is done when the operation and all
// its copies have ended, and the network's writes are visible to the GPU.
#include <functional>
#include <memory>
#include <vector>

#include "client/gpu/gpu_memory.h"
#include "client/gpu/staged_call.h"
#include "client/operation/direct_memory.h"

namespace tributary::client::gpu {

class DirectCall final : public DirectMemory {
 public:
  /// Makes the same call with buffers in host memory: pinned memory, or else ordinary memory. Copies to the host go in
  /// the order of the GPU's work.
  using Stage = std::function<Result<std::shared_ptr<StagedCall>>(const CallBuffers& caller)>;

  DirectCall(const CallBuffers& caller, std::shared_ptr<GpuMemory> gpu, Stage stage)
      : caller_(caller), gpu_(gpu), device_(std::move(gpu)), stage_(std::move(stage)) {}

  /// Ends the call with the operation's `outcome`; called on the communicator's thread. Calls `done` on any thread.
  void finish(const Status& outcome, std::function<void(const Status&)> done);
  /// Returns the staged call; nullptr while the call is direct.
  [[nodiscard]] const std::shared_ptr<StagedCall>& staged() const noexcept { return staged_; }

  [[nodiscard]] const std::shared_ptr<DirectDevice>& device() const noexcept override { return device_; }
  [[nodiscard]] Result<std::vector<std::span<const std::byte>>> keep(transport::Transport& transport) override;
  [[nodiscard]] Result<InHostMemory> materialize(bool with_results, const Status& why) override;

 private:
  const CallBuffers caller_;
  const std::shared_ptr<GpuMemory> gpu_;
  const std::shared_ptr<DirectDevice> device_;
  const Stage stage_;
  std::vector<std::shared_ptr<GpuMemory::Allocation>> kept_;
  std::shared_ptr<StagedCall> staged_;
};

}  // namespace tributary::client::gpu

#pragma once
// One call whose buffers are in a GPU's memory and stay there: the network reads and writes them. Where that ends it
// becomes a StagedCall, with all that it has.
//
// The caller's buffers are ours until the request is done: when the operation has ended, every copy that it caused has,
// and the GPU sees what the network wrote.
#include <functional>
#include <memory>
#include <vector>

#include "client/gpu/gpu_memory.h"
#include "client/gpu/staged_call.h"
#include "client/operation/direct_memory.h"

namespace tributary::client::gpu {

class DirectCall final : public DirectMemory {
 public:
  /// The same buffers in host memory, of whatever kind can still be had, its copies down in the GPU's own order.
  using Stage = std::function<Result<std::shared_ptr<StagedCall>>(const CallBuffers& caller)>;

  DirectCall(const CallBuffers& caller, std::shared_ptr<GpuMemory> gpu, Stage stage)
      : caller_(caller), gpu_(gpu), device_(std::move(gpu)), stage_(std::move(stage)) {}

  /// The operation has ended with `outcome`; on the communicator's thread. `done` on any thread.
  void finish(const Status& outcome, std::function<void(const Status&)> done);
  /// nullptr: it is direct still.
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

#include "client/gpu/direct_call.h"

#include <algorithm>

namespace tributary::client::gpu {

Result<std::vector<std::span<const std::byte>>> DirectCall::keep(transport::Transport& transport) {
  kept_.clear();
  std::vector<std::span<const std::byte>> ranges;
  const std::span<const std::byte> send(caller_.send, caller_.send_bytes), recv(caller_.recv, caller_.recv_bytes);
  for (const auto& buffer : {send, recv}) {
    if (buffer.empty()) continue;
    auto allocation = gpu_->keep(transport, buffer);
    if (!allocation) return std::unexpected(allocation.error());
    if ((*allocation)->refused) return std::unexpected(*(*allocation)->refused);
    if (std::ranges::find(kept_, *allocation) != kept_.end()) continue;
    ranges.push_back((*allocation)->memory);
    kept_.push_back(std::move(*allocation));
  }
  return ranges;
}

Result<DirectMemory::InHostMemory> DirectCall::materialize(bool with_results, const Status& why) {
  if (!why) {
    gpu_->tell("GPU " + std::to_string(gpu_->device()) +
               ": data go through pinned host memory: " + why.error().message);
    // Remember only this kind of obstacle: others may disappear, such as a missing connection or a lack of memory.
    if (why.error().code == Errc::unsupported) {
      for (const auto& allocation : kept_) allocation->refused = why.error();
    }
  }
  auto staged = stage_(caller_);
  if (!staged) return std::unexpected(staged.error());
  staged_ = std::move(*staged);
  kept_.clear();
  staged_->begin(with_results);
  return InHostMemory{.send = staged_->host().send, .recv = staged_->host().recv, .staged = staged_};
}

void DirectCall::finish(const Status& outcome, std::function<void(const Status&)> done) {
  if (staged_) return staged_->finish(outcome, std::move(done));
  gpu_->after_all([outcome, done = std::move(done)](const Status& copies) { done(copies ? outcome : copies); });
}

}  // namespace tributary::client::gpu

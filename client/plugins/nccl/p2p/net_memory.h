#pragma once
// Memory that NCCL has registered with a connection. The transport prepares this memory before its first use.
#include <span>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// Over verbs, the device knows the region from the first frame that uses it until this object ends. Over TCP nothing
/// happens. NCCL registers a buffer with every connection that uses it; the connections of one engine share its
/// registration.
class NetMemory {
 public:
  NetMemory(std::shared_ptr<Engine> engine, std::span<const std::byte> region) : engine_(std::move(engine)) {
    const auto lock = engine_->lock();
    kept_ = engine_->transport().keep_registered(region);
    if (kept_) engine_->poll();  // the transport uses the region from its next poll() on
  }
  /// The caller may free the region when this call has returned.
  ~NetMemory() {
    if (!kept_) return;
    const auto lock = engine_->lock();
    kept_.reset();
    engine_->poll();
  }
  NetMemory(const NetMemory&) = delete;
  NetMemory& operator=(const NetMemory&) = delete;

 private:
  const std::shared_ptr<Engine> engine_;
  std::unique_ptr<transport::KeptMemory> kept_;
};

}  // namespace tributary::nccl

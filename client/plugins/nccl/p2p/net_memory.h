#pragma once
// Memory that NCCL has announced for a connection: what the transport does with it beforehand.
#include <span>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// Where messages go over verbs, the device knows the region from the first frame that uses it until this ends; over
/// TCP nothing happens. NCCL registers a buffer with every connection that uses it: those of one engine share it.
class NetMemory {
 public:
  NetMemory(std::shared_ptr<Engine> engine, std::span<const std::byte> region) : engine_(std::move(engine)) {
    const auto lock = engine_->lock();
    kept_ = engine_->transport().keep_registered(region);
    if (kept_) engine_->poll();  // it counts from the transport's next turn on
  }
  /// The region may go away when this returns.
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

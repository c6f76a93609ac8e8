#pragma once
// What NCCL holds of either end of a connection, and registers memory with.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// The calls that NCCL makes for one connection come with a pointer to this.
class NetComm : public transport::ChannelHandler {
 public:
  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] const std::shared_ptr<Engine>& shared_engine() const noexcept { return engine_; }

 protected:
  explicit NetComm(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  /// Closes the connection. `in_order`: nothing is under way here any more, but the other side may not have heard of
  /// all of it: a message that was sent, or that one was taken. That is waited for, though not for long.
  void end(std::unique_ptr<transport::Channel> channel, bool in_order) const;

 private:
  const std::shared_ptr<Engine> engine_;
};

}  // namespace tributary::nccl

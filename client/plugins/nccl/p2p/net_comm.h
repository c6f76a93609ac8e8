#pragma once
// The object that NCCL holds for either end of a connection. NCCL registers memory with this object.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

inline constexpr std::size_t kNetRequestsMax = 64;  // per connection; NCCL has at most 32 unfinished requests

/// NCCL passes a pointer to this object to all calls of one connection.
class NetComm {
 public:
  virtual ~NetComm() = default;
  NetComm(const NetComm&) = delete;
  NetComm& operator=(const NetComm&) = delete;

  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] const std::shared_ptr<Engine>& shared_engine() const noexcept { return engine_; }

 protected:
  explicit NetComm(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

 private:
  const std::shared_ptr<Engine> engine_;
};

}  // namespace tributary::nccl

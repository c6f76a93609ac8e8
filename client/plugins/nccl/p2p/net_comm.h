#pragma once
// The object that NCCL holds for either end of a connection, and with which it registers memory.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

inline constexpr std::size_t kNetRequestsMax = 64;  // for each connection; NCCL has at most 32 under way

/// The calls that NCCL makes for one connection come with a pointer to this.
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

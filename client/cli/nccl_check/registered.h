#pragma once
// Memory that is registered with a connection before the connection uses it, as in NCCL.
#include <span>
#include <vector>

#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

/// Memory that stays registered with the plugin as long as this object lives.
class Registered {
 public:
  Registered(Session& session, void* comm, std::size_t bytes) : session_(session), comm_(comm), bytes_(bytes) {
    require_success(session_.net().register_memory(comm_, bytes_.data(), bytes_.size(), &memory_), "net regMr");
    require(memory_ != nullptr, "regMr gave no handle");
  }
  ~Registered() { session_.net().deregister_memory(comm_, memory_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  [[nodiscard]] void* memory() const { return memory_; }

 private:
  Session& session_;
  void* const comm_;
  std::vector<std::byte> bytes_;
  void* memory_ = nullptr;
};

}  // namespace tributary::cli::nccl_check

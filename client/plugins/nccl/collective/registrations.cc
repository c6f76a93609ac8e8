#include "client/plugins/nccl/collective/registrations.h"

#include <algorithm>

#include "client/plugins/nccl/log.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {

template <class Register>
abi::Result Registrations::add(const Region& region, void** memory, Register enter) {
  *memory = nullptr;
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = table_.try_emplace(region);
  if (is_new && enter(&at->second.memory) != TRIBUTARY_OK) {
    warn("memory of " + std::to_string(region.bytes) + " bytes cannot be registered: " + tributary_last_error(comm_));
    table_.erase(at);
    return abi::Result::system_error;
  }
  TRIBUTARY_ASSERT(is_new == (at->second.users == 0), "a region that is registered already has {} users",
                   at->second.users);
  ++at->second.users;
  *memory = at->second.memory;
  return abi::Result::success;
}

abi::Result Registrations::add(void* data, std::size_t bytes, int pointer_kind, void** memory) {
  return add(Region{data, bytes, pointer_kind}, memory, [&](tributary_mem** made) {
    const auto kind = pointer_kind == abi::kPointerHost ? TRIBUTARY_MEM_HOST : TRIBUTARY_MEM_CUDA;
    return tributary_mem_register(comm_, data, bytes, kind, made);
  });
}

abi::Result Registrations::add_dma_buf(void* data, std::size_t bytes, std::uint64_t offset, int descriptor,
                                       void** memory) {
  return add(Region{data, bytes, abi::kPointerDmaBuf}, memory, [&](tributary_mem** made) {
    return tributary_mem_register_dmabuf(comm_, data, bytes, offset, descriptor, made);
  });
}

abi::Result Registrations::remove(void* memory) {
  if (memory == nullptr) return abi::Result::success;
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(table_, [&](const auto& entry) { return entry.second.memory == memory; });
  if (at == table_.end()) return abi::Result::invalid_argument;
  TRIBUTARY_ASSERT(at->second.users > 0, "a region of {} bytes has no user", at->first.bytes);
  if (--at->second.users > 0) return abi::Result::success;
  const auto status = tributary_mem_deregister(comm_, at->second.memory);
  table_.erase(at);
  return status == TRIBUTARY_OK ? abi::Result::success : abi::Result::internal_error;
}

}  // namespace tributary::nccl

#pragma once
// Memory that NCCL has registered for a group. NCCL registers the same region once for each channel and direction; the
// plugin registers it in the library only once.
#include <map>
#include <mutex>

#include "client/plugins/nccl/abi/base.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Any thread may call it: NCCL registers on its service thread while its progress thread sends. Registrations that are
/// left at the end of the library's communicator end with that communicator.
class Registrations {
 public:
  explicit Registrations(tributary_comm* comm) : comm_(comm) {}
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// Sets `*memory` to the handle for remove().
  abi::Result add(void* data, std::size_t bytes, int pointer_kind, void** memory);
  abi::Result add_dma_buf(void* data, std::size_t bytes, std::uint64_t offset, int descriptor, void** memory);
  abi::Result remove(void* memory);

 private:
  struct Region {
    void* data;
    std::size_t bytes;
    int kind;
    auto operator<=>(const Region&) const = default;
  };
  struct Registration {
    tributary_mem* memory = nullptr;
    std::size_t users = 0;
  };
  using Table = std::map<Region, Registration>;

  template <class Register>
  abi::Result add(const Region& region, void** memory, Register enter);

  tributary_comm* const comm_;
  std::mutex mutex_;
  Table table_;
};

}  // namespace tributary::nccl

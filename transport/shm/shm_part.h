#pragma once
// The state that the shared-memory connections of one transport have in common, besides the core.
#include <memory>
#include <vector>

#include "transport/shm/lent_memory.h"
#include "tributary/transport/shm.h"

namespace tributary::transport {

class ShmConnection;

class ShmPart {
 public:
  explicit ShmPart(const ShmSettings& wanted) : settings(wanted) {}
  const ShmSettings settings;
  ShmStatistics statistics;
  std::vector<ShmConnection*> open;  // connections that have their memory
  LentMemory lent;
};

/// Lends the range to the other sides of these connections (MemoryLender).
[[nodiscard]] std::unique_ptr<KeptMemory> lend_memory(const std::shared_ptr<SocketCore>& core,
                                                      const std::shared_ptr<ShmPart>& part, const std::byte* address,
                                                      SharedRange range);

}  // namespace tributary::transport

#pragma once
// Registers memory that the processor does not reach.
#include <span>

#include "transport/verbs/resources.h"
#include "tributary/transport/device_memory.h"

namespace tributary::transport::verbs {

/// Registers the memory by the first of the owner's ways that works. Errc::unsupported says why none does.
[[nodiscard]] Result<MemoryRegionPtr> register_device_memory(ibv_pd& domain, std::span<const std::byte> memory,
                                                             unsigned rights, DeviceMemory& owner);

}  // namespace tributary::transport::verbs

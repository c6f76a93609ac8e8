#pragma once
// Registers memory that the processor cannot access.
#include <span>

#include "transport/verbs/resources.h"
#include "tributary/transport/device_memory.h"

namespace tributary::transport::verbs {

/// Registers the memory by the first of the owner's ways that works. The text of Errc::unsupported says why none works.
[[nodiscard]] Result<MemoryRegionPtr> register_device_memory(ibv_pd& domain, std::span<const std::byte> memory,
                                                             unsigned rights, DeviceMemory& owner);

}  // namespace tributary::transport::verbs

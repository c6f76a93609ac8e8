#pragma once
// Registering memory that the processor does not reach.
#include <span>

#include "transport/verbs/resources.h"
#include "tributary/transport/device_memory.h"

namespace tributary::transport::verbs {

/// By the first of its ways that this domain's device takes. Errc::unsupported: none, and why.
[[nodiscard]] Result<MemoryRegionPtr> register_device_memory(ibv_pd& domain, std::span<const std::byte> memory,
                                                             unsigned rights, DeviceMemory& owner);

}  // namespace tributary::transport::verbs

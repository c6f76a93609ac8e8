#pragma once
// Finds the file that a range of this process's memory is mapped from.
#include <span>

#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

/// Finds memory that is one shared, writable mapping of a memfd, or several that continue each other.
/// Errc::unsupported says what the memory is instead.
[[nodiscard]] Result<SharedRange> find_mapped_file(std::span<const std::byte> memory);

}  // namespace tributary::transport

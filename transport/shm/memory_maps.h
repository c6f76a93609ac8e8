#pragma once
// Finds the file from which a range of this process's memory is mapped.
#include <span>

#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

/// Finds memory that is one shared, writable mapping of a memfd, or several that continue each other.
/// The text of Errc::unsupported says which kind of memory it is instead.
[[nodiscard]] Result<SharedRange> find_mapped_file(std::span<const std::byte> memory);

}  // namespace tributary::transport

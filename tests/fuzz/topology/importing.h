#pragma once
#include <cstddef>
#include <cstdint>

#include "tree-manager/topology/import/import.h"

namespace tributary::manager {

/// Imports the bytes in one format. Stops the process if the result is a topology that the manager would refuse, or
/// that changes when it is written and read again.
void import_bytes(ImportFormat format, const std::uint8_t* data, std::size_t size);

}  // namespace tributary::manager

#pragma once
#include <cstddef>
#include <cstdint>

#include "tree-manager/topology/import/import.h"

namespace tributary::manager {

/// Imports the bytes in one format. Stops the process if a topology comes of them that the manager would refuse, or that
/// is read back as another one.
void import_bytes(ImportFormat format, const std::uint8_t* data, std::size_t size);

}  // namespace tributary::manager

#pragma once
// Files behind memory that two processes map.
#include <fcntl.h>

#include <cstddef>

namespace tributary::transport {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
/// These seals keep a file's size, so that a process that maps it never meets a bus error.
inline constexpr int kSizeSeals = F_SEAL_GROW | F_SEAL_SHRINK;

}  // namespace tributary::transport

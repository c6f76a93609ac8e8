#pragma once
#include <cstddef>

/// Counts the bytes that this program's only thread allocates with `new`, beyond the bytes that it had when the
/// counting began.
class MemoryCount {
 public:
  MemoryCount();
  ~MemoryCount();
  MemoryCount(const MemoryCount&) = delete;
  MemoryCount& operator=(const MemoryCount&) = delete;
  /// Returns the greatest number of these bytes that were in use at one time.
  [[nodiscard]] std::size_t most() const;
};

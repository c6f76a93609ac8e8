#pragma once
#include <cstddef>

/// Counts the bytes that this program's one thread takes with `new` beyond those that it had when the counting began.
class MemoryCount {
 public:
  MemoryCount();
  ~MemoryCount();
  MemoryCount(const MemoryCount&) = delete;
  MemoryCount& operator=(const MemoryCount&) = delete;
  /// Returns the most that there were at a time.
  [[nodiscard]] std::size_t most() const;
};

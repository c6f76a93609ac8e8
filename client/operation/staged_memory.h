#pragma once
// Buffers of an operation that stand for memory which the network cannot reach, such as a GPU's: the input is copied
// into them by parts while the operation already runs, and results may leave them before it has ended.
#include <cstddef>
#include <span>

namespace tributary::client {

/// Called on the communicator's thread.
class StagedMemory {
 public:
  virtual ~StagedMemory() = default;
  /// Returns whether the input before `end` has arrived; once true, it stays true. Communicator::staged_input_arrived()
  /// says when to ask again.
  [[nodiscard]] virtual bool input_ready(const std::byte* end) const noexcept = 0;
  [[nodiscard]] virtual bool input_whole() const noexcept = 0;
  /// Says that this part of the result is whole and final; called once for each part.
  virtual void result_landed(std::span<const std::byte> part) = 0;
};

}  // namespace tributary::client

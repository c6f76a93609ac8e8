#pragma once
// Buffers of an operation that stand for memory which the network cannot reach, such as a GPU's. The input arrives in
// them part by part while the operation already runs, and results may leave them before the operation has ended.
#include <cstddef>
#include <span>

namespace tributary::client {

/// The staged buffers of one operation. The communicator's thread calls all functions.
class StagedMemory {
 public:
  virtual ~StagedMemory() = default;
  /// Returns whether the input before `end` has arrived; once true, it stays true. After a call of
  /// Communicator::staged_input_arrived() the answer may have changed.
  [[nodiscard]] virtual bool input_ready(const std::byte* end) const noexcept = 0;
  [[nodiscard]] virtual bool input_whole() const noexcept = 0;
  /// Tells the memory that this part of the result is whole and final; called once for each part.
  virtual void result_landed(std::span<const std::byte> part) = 0;
  /// Returns the rate of the copies from and to the memory for which the buffers stand, in bytes per microsecond; 0: not
  /// known yet.
  [[nodiscard]] virtual double copy_rate() const noexcept { return 0; }
  /// Returns how many bytes of the result have not come to the memory yet for which the buffers stand.
  [[nodiscard]] virtual std::size_t result_left() const noexcept { return 0; }
};

}  // namespace tributary::client

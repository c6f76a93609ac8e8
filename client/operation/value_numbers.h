#pragma once
// Counts of NaN, infinities and subnormal numbers in the buffers of collectives, if the user asks for them.
#include <cstdint>

#include "tributary/kernels/counters.h"

namespace tributary::client {

/// The ways to treat the values of collectives (TRIBUTARY_CHECK_VALUES).
enum class ValueCheck : std::uint8_t {
  off,        // nothing
  count,      // counts them
  nan_fails,  // counts them, and ends the communicator if an input has a NaN
};

/// The counts of the elements that one rank has read and written.
struct ValueNumbers {
  struct Buffer {
    std::uint64_t elements = 0;
    kernels::ValueCounts found{};
    Buffer& operator+=(const Buffer& other) noexcept {
      elements += other.elements;
      found += other.found;
      return *this;
    }
  };
  Buffer input, result;
  ValueNumbers& operator+=(const ValueNumbers& other) noexcept {
    input += other.input;
    result += other.result;
    return *this;
  }
};

}  // namespace tributary::client

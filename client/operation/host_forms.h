#pragma once
// The forms that the leader of a host contributes to exact sums between hosts: each is the sum, without any rounding, of
// the values of the ranks for which the leader acts (Operation::rank_inputs).
#include <cstddef>
#include <span>
#include <vector>

#include "client/operation/operation.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::client {

/// Appends the inputs of `count` elements of each of these ranks. `from`: the place of the elements in Operation::send.
void add_rank_inputs(const Operation& operation, const std::byte* from, std::size_t count,
                     std::vector<kernels::PartialInput>& inputs);

/// One thread uses an object, whose memory serves call after call.
class HostForms {
 public:
  /// Writes the form of `count` elements, and returns its size. `out` has at least form_bytes_max() bytes.
  [[nodiscard]] std::size_t make(const Operation& operation, const std::byte* from, std::size_t count,
                                 std::span<std::byte> out);

 private:
  std::vector<kernels::PartialInput> inputs_;
  kernels::ManyPartialSums sums_;
};

}  // namespace tributary::client

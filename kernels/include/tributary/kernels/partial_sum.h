#pragma once
// The form in which exact sums of some of the ranks travel from one aggregator to the next, and between hosts.
// docs/protocol.md draws it.
//
// A form is a number of elements, a number of ranks, and blocks of up to 256 elements. A block has one exponent and one
// width in bytes; each element is a whole number of that width, in two's complement, times 2^exponent. So a block is as
// long as the range of its sums demands. A block in which a value was NaN, infinite or -0 also has a byte of marks for
// each element.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// One input of a sum: the values of one rank, or a form with the sums of several ranks.
struct PartialInput {
  std::span<const std::byte> bytes;
  bool is_form = false;  // the bytes are a form that partial_sum_elements() has accepted
};

/// The most inputs of one call.
inline constexpr std::size_t kPartialInputsMax = 64;

/// Returns the number of elements of a form; nullopt if the bytes are no form of sums of this type.
[[nodiscard]] std::optional<std::size_t> partial_sum_elements(DType dtype, std::span<const std::byte> bytes) noexcept;

/// Returns the number of ranks whose values this input sums: of a form, 1 to kRanksMax.
[[nodiscard]] std::uint32_t ranks_of(DType dtype, const PartialInput& input) noexcept;

/// Writes the form of the sum of all inputs, and returns its size. No bit is lost.
///
/// - dtype: a float type
/// - inputs: 1 to kPartialInputsMax, each of `count` elements, at most 2^32 - 1
/// - out: at least form_bytes_max() bytes; disjoint from all inputs
///
/// A sum beyond what 2^27 ranks could have becomes NaN. The call never allocates or throws; any thread may call it.
[[nodiscard]] std::size_t add_partial_sums(DType dtype, std::span<const PartialInput> inputs, std::size_t count,
                                           std::span<std::byte> out) noexcept;

/// out[i] = round((the sum of all inputs) / divisor): the bits of exact_sum() over the values of all ranks. The divisor
/// is 1 to kExactDivisorMax (exact.h).
void round_partial_sums(DType dtype, std::span<const PartialInput> inputs, void* out, std::size_t count,
                        std::uint32_t divisor) noexcept;

/// The same for any number of inputs: of more than kPartialInputsMax inputs it first makes forms of parts of them. One
/// thread uses an object, whose memory serves call after call.
class ManyPartialSums {
 public:
  [[nodiscard]] std::size_t add(DType dtype, std::span<const PartialInput> inputs, std::size_t count,
                                std::span<std::byte> out) {
    return add_partial_sums(dtype, condensed(dtype, inputs, count), count, out);
  }
  void round(DType dtype, std::span<const PartialInput> inputs, void* out, std::size_t count, std::uint32_t divisor) {
    round_partial_sums(dtype, condensed(dtype, inputs, count), out, count, divisor);
  }

 private:
  /// Returns inputs with the same sum, at most kPartialInputsMax.
  [[nodiscard]] std::span<const PartialInput> condensed(DType dtype, std::span<const PartialInput> inputs,
                                                        std::size_t count);

  std::vector<std::vector<std::byte>> forms_;
  std::vector<PartialInput> inputs_;
};

}  // namespace tributary::kernels

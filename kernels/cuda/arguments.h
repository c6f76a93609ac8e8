#pragma once
// The arguments that the host gives to the device kernels. The host's code and every .cu file include this header, so
// it uses only C++20, without Result.
#include <cstddef>
#include <cstdint>

namespace tributary::kernels::cuda {

inline constexpr std::uint32_t kInputsMax = 64;
inline constexpr std::uint32_t kThreadsPerBlock = 256;
inline constexpr std::uint32_t kVectorBytes = 16;
inline constexpr std::uint32_t kScaleUnit = 32;  // elements; blocks with one scale are multiples of it

/// Division by a constant as a product and two shifts: q = (t + ((n - t) >> shift_first)) >> shift_second, t = upper
/// half of n * multiplier. It works in 64 bits for 64-bit integers, else in 32. Source:
/// T. Granlund, P. L. Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994, figure 4.1.
struct Reciprocal {
  std::uint64_t multiplier;
  std::uint32_t shift_first;
  std::uint32_t shift_second;
};

[[nodiscard]] constexpr Reciprocal reciprocal_of(std::uint32_t divisor, bool wide) noexcept {
  std::uint32_t log = 0;  // becomes the smallest number with 2^log >= divisor
  while (log < 32 && (std::uint64_t{1} << log) < divisor) ++log;
  const std::uint64_t excess = (std::uint64_t{1} << log) - divisor;
  // floor(excess * 2^bits / divisor), a digit of 32 bits at a time. The excess is smaller than the divisor.
  std::uint64_t quotient = (excess << 32) / divisor;
  if (wide) quotient = (quotient << 32) | ((((excess << 32) % divisor) << 32) / divisor);
  return {quotient + 1, log > 0 ? 1U : 0U, log > 0 ? log - 1 : 0U};
}

/// Returns the multiplier that divides a byte: see byte_quotient() in device/element.cuh.
[[nodiscard]] constexpr Reciprocal reciprocal_for_bytes(std::uint32_t divisor) noexcept {
  return {(1U << 16) / divisor + 1, 0, 0};
}

/// Returns the reciprocal for integers of `size` bytes.
[[nodiscard]] constexpr Reciprocal reciprocal_for(std::uint32_t divisor, std::size_t size) noexcept {
  return size == 1 ? reciprocal_for_bytes(divisor) : reciprocal_of(divisor, size == 8);
}

/// Divides the arrays of one launch: `head` elements up to the first 16-byte boundary, then `vectors` of 16 bytes, then
/// the remaining elements. If the arrays have no common boundary, `vectors` is 0 and every element moves by itself.
struct Split {
  std::uint64_t head;
  std::uint64_t vectors;
};

struct ReduceArguments {
  const void* inputs[kInputsMax];
  void* out;
  std::uint64_t count;
  Split split;
  Reciprocal reciprocal;  // used for integer avg
  std::uint32_t inputs_count;
  std::uint32_t divisor;  // 1: no division
};

/// `split.head` and `split.vectors` count groups of four elements: 16 bytes of float32, 8 or 4 of the other format.
struct ConvertArguments {
  const void* in;
  void* out;
  std::uint64_t count;
  Split split;
};

struct QuantizeArguments {
  const void* in;
  void* out;
  float* scales;
  std::uint64_t count;
  Reciprocal by_units;    // divides by the number of units of a block in 32 bits; a unit is 32 elements
  std::uint32_t block;    // elements, a multiple of 32
  std::uint32_t lanes;    // number of lanes for a block: 8, 16 or 32, each with one or two groups of four elements
  std::uint32_t aligned;  // not 0: a group of four elements moves at once, 16 bytes of float32 and 4 of int8
  std::uint32_t padding;
};

/// One tensor of a pack. All tensors are cut into chunks of kChunkBytes, which are numbered in order, so that blocks
/// share the work evenly even if the sizes differ.
struct PackEntry {
  std::uint64_t tensor;  // device address
  std::uint64_t offset;  // bytes from the start of the packed buffer
  std::uint64_t bytes;
  std::uint64_t first_chunk;  // number of chunks of all earlier tensors
};
static_assert(sizeof(PackEntry) == 32);

inline constexpr std::uint64_t kChunkBytes = 16384;

enum class PackDirection : std::uint32_t { pack = 0, unpack = 1 };

struct PackArguments {
  const PackEntry* entries;  // array in device memory
  void* packed;
  std::uint64_t chunks;
  std::uint32_t entries_count;
  PackDirection direction;
};

/// The answers of the kernels of partial sums, for the host and for the next kernel.
struct PartialResult {
  std::uint64_t bytes;               // see PartialAnswer
  std::uint64_t fault;               // the same
  std::uint32_t faults[kInputsMax];  // not 0: this input is no form
};

/// The arguments of all kernels of partial sums: the inputs are values of ranks, or forms (protocol/sum_form.h).
struct PartialArguments {
  const void* inputs[kInputsMax];
  std::uint64_t bytes[kInputsMax];  // of each form
  std::uint64_t forms;              // bit k: input k is a form
  std::uint64_t* offsets;           // of block b of input k, from the start of its form: offsets[k * blocks + b]
  std::uint64_t* places;            // of block b of the result: first its length, then its offset
  PartialResult* result;            // nullptr: no input is a form, and no answer is wanted
  void* out;
  std::uint64_t count;  // elements
  std::uint32_t inputs_count;
  std::uint32_t inputs_log2;  // rounded up
  std::uint32_t divisor;
  std::int32_t least;  // the range of the type's forms, for the kernel that does not know the type
  std::int32_t end;
};

}  // namespace tributary::kernels::cuda

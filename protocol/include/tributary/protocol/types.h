#pragma once
// The data types, reduction operators and collectives of frames, kernels and the API. The numbers are wire format and
// ABI: only append new ones. .cu files include this header, so its code must be C++20.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace tributary {

enum class DType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  bfloat16 = 7,
  float32 = 8,
  float64 = 9,
  float8_e4m3 = 10,
  float8_e5m2 = 11,
  int16 = 12,
  uint16 = 13,
};
inline constexpr std::uint8_t kDTypeCount = 14;

/// The operators of tributary.h. A "b" stands for the bits of integers; an "l" for their truth values, with the results
/// 0 and 1.
enum class ReduceOp : std::uint8_t {
  sum = 0,
  prod = 1,
  min = 2,
  max = 3,
  avg = 4,
  band = 5,
  bor = 6,
  bxor = 7,
  land = 8,
  lor = 9,
  lxor = 10,
};
inline constexpr std::uint8_t kReduceOpCount = 11;
/// Numbers from this one on belong to operators that only this library's processes use among themselves.
inline constexpr std::uint8_t kInternalReduceOpMin = 64;
static_assert(kReduceOpCount <= kInternalReduceOpMin, "no operator of tributary.h has the number of an internal one");

[[nodiscard]] constexpr bool is_logical(ReduceOp op) noexcept {
  return ReduceOp::land <= op && op <= ReduceOp::lxor;
}

/// The collectives. Each call of a collective gets a number in its communicator's order of calls.
enum class Collective : std::uint8_t {
  all_reduce = 0,
  reduce = 1,
  broadcast = 2,
  reduce_scatter = 3,
  all_gather = 4,
  barrier = 5,
  all_to_all = 6,
  gather = 7,
  scatter = 8,
};
inline constexpr std::uint8_t kCollectiveCount = 9;

/// Returns the number of bytes of one element; 0 for a value that is no DType.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return 1;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
    case DType::uint16:
      return 2;
    case DType::int32:
    case DType::uint32:
    case DType::float32:
      return 4;
    case DType::int64:
    case DType::uint64:
    case DType::float64:
      return 8;
  }
  return 0;
}

/// True if the accumulator is wider than the element (float32 for the 8- and 16-bit floats). Such contributions must be
/// summed in one pass: after a rounded partial sum, the bits would depend on the order of arrival.
[[nodiscard]] constexpr bool accumulates_wider(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float8_e4m3 ||
         dtype == DType::float8_e5m2;
}

[[nodiscard]] constexpr std::string_view to_string(DType dtype) noexcept {
  constexpr std::string_view names[] = {"int8",        "uint8",       "int32",    "uint32",  "int64",
                                        "uint64",      "float16",     "bfloat16", "float32", "float64",
                                        "float8_e4m3", "float8_e5m2", "int16",    "uint16"};
  static_assert(std::size(names) == kDTypeCount);
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypeCount ? names[index] : std::string_view{"invalid"};
}
[[nodiscard]] constexpr std::string_view to_string(ReduceOp op) noexcept {
  constexpr std::string_view names[] = {"sum", "prod", "min",  "max", "avg", "band",
                                        "bor", "bxor", "land", "lor", "lxor"};
  static_assert(std::size(names) == kReduceOpCount);
  const auto index = static_cast<std::size_t>(op);
  return index < kReduceOpCount ? names[index] : std::string_view{"invalid"};
}
[[nodiscard]] constexpr std::string_view to_string(Collective collective) noexcept {
  constexpr std::string_view names[] = {"all_reduce", "reduce",     "broadcast", "reduce_scatter", "all_gather",
                                        "barrier",    "all_to_all", "gather",    "scatter"};
  const auto index = static_cast<std::size_t>(collective);
  return index < kCollectiveCount ? names[index] : std::string_view{"invalid"};
}

[[nodiscard]] constexpr std::optional<DType> dtype_from_string(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < kDTypeCount; ++i) {
    if (to_string(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}
[[nodiscard]] constexpr std::optional<ReduceOp> reduce_op_from_string(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < kReduceOpCount; ++i) {
    if (to_string(static_cast<ReduceOp>(i)) == name) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

}  // namespace tributary

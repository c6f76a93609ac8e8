#pragma once
// One dtype under one operation: the conversion of an element to an accumulator, the combination of two accumulators,
// and the store of the last accumulator.
#include <type_traits>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device/portable.cuh"
#include "kernels/cuda/device/small_float.cuh"
#include "tributary/protocol/types.h"

namespace tributary::kernels::cuda {

/// Sum, product and average of float32 and float64, and of the small floats in float32.
template <class T, ReduceOp kOp>
struct PlainFloat {
  using Stored = T;
  using Accumulator = T;
  static TRIBUTARY_DEVICE T load(T stored) { return stored; }
  static TRIBUTARY_DEVICE T combine(T a, T b) { return kOp == ReduceOp::prod ? a * b : a + b; }
  static TRIBUTARY_DEVICE T store(T value, const ReduceArguments& arguments) {
    return kOp == ReduceOp::avg && arguments.divisor != 1 ? value / static_cast<T>(arguments.divisor) : value;
  }
};

template <DType kDType, ReduceOp kOp>
struct WidenedFloat {
  using Stored = typename SmallFloat<kDType>::Stored;
  using Accumulator = float;
  using Wide = PlainFloat<float, kOp>;
  static TRIBUTARY_DEVICE float load(Stored stored) { return SmallFloat<kDType>::widen(stored); }
  static TRIBUTARY_DEVICE float combine(float a, float b) { return Wide::combine(a, b); }
  static TRIBUTARY_DEVICE Stored store(float value, const ReduceArguments& arguments) {
    return SmallFloat<kDType>::template narrow<false>(Wide::store(value, arguments));
  }
};

/// min and max of floats, on integers in the order of IEEE 754-2019 minimum and maximum: kernels/cpu/elements-inl.h
/// explains it. U is the unsigned integer of the float's width; kLargest has the bits of +infinity, or of the largest
/// value if the format has no infinity.
template <class U, U kLargest, U kQuiet, bool kMin>
struct OrderedFloat {
  using Stored = U;
  using Accumulator = std::conditional_t<sizeof(U) == 8, std::uint64_t, std::uint32_t>;
  using Signed = std::make_signed_t<U>;
  static constexpr U kMagnitude = static_cast<U>(~U{0}) >> 1;
  static constexpr U kCut = kMin ? static_cast<U>(kLargest + 1) : static_cast<U>(~kLargest);  // the key that becomes 0

  static TRIBUTARY_DEVICE U flip(U bits) { return bits ^ (static_cast<Signed>(bits) < 0 ? kMagnitude : U{0}); }
  static TRIBUTARY_DEVICE Accumulator load(U bits) { return static_cast<U>(flip(bits) - kCut); }
  static TRIBUTARY_DEVICE Accumulator combine(Accumulator a, Accumulator b) { return (a < b) == kMin ? a : b; }
  static TRIBUTARY_DEVICE U store(Accumulator key, const ReduceArguments&) {
    const U bits = flip(static_cast<U>(static_cast<U>(key) + kCut));
    return (bits & kMagnitude) > kLargest ? static_cast<U>(bits | kQuiet) : bits;
  }
};

/// Sum, product, min and max of integers, which wrap; bytes are combined in 32 bits.
template <class T, ReduceOp kOp>
struct Integer {
  using Stored = T;
  using Accumulator =
      std::conditional_t<sizeof(T) == 8, T, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;
  using Unsigned = std::make_unsigned_t<Accumulator>;

  static TRIBUTARY_DEVICE Accumulator load(T stored) { return stored; }
  static TRIBUTARY_DEVICE Accumulator combine(Accumulator a, Accumulator b) {
    if constexpr (kOp == ReduceOp::min) return a < b ? a : b;
    if constexpr (kOp == ReduceOp::max) return a < b ? b : a;
    if constexpr (kOp == ReduceOp::prod)
      return static_cast<Accumulator>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    return static_cast<Accumulator>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
  static TRIBUTARY_DEVICE T store(Accumulator value, const ReduceArguments& arguments) {
    const T wrapped = static_cast<T>(value);
    if constexpr (kOp != ReduceOp::avg) return wrapped;
    if (arguments.divisor == 1) return wrapped;
    if constexpr (std::is_signed_v<T>) {
      const Unsigned wide = static_cast<Unsigned>(Accumulator{wrapped});
      const Unsigned quotient = divide(wrapped < 0 ? Unsigned{0} - wide : wide, arguments.reciprocal);
      return static_cast<T>(wrapped < 0 ? Unsigned{0} - quotient : quotient);
    } else {
      return static_cast<T>(divide(wrapped, arguments.reciprocal));
    }
  }

 private:
  static TRIBUTARY_DEVICE Unsigned divide(Unsigned value, const Reciprocal& by) {
    const Unsigned product = multiply_high(value, static_cast<Unsigned>(by.multiplier));
    return (product + ((value - product) >> by.shift_first)) >> by.shift_second;
  }
};

// ---- The choice of the class by dtype and operation.

template <DType kDType, ReduceOp kOp>
inline constexpr bool kOrders = kOp == ReduceOp::min || kOp == ReduceOp::max;

template <DType kDType, ReduceOp kOp>
struct ElementOf {
  using Small = SmallFloat<kDType>;
  using U = typename Small::Stored;
  using type = std::conditional_t<
      kOrders<kDType, kOp>,
      OrderedFloat<U, static_cast<U>(Small::kLargestBits), static_cast<U>(Small::kQuietBit), kOp == ReduceOp::min>,
      WidenedFloat<kDType, kOp>>;
};
template <ReduceOp kOp>
struct ElementOf<DType::float32, kOp> {
  using type = std::conditional_t<kOrders<DType::float32, kOp>,
                                  OrderedFloat<std::uint32_t, 0x7F800000U, 0x00400000U, kOp == ReduceOp::min>,
                                  PlainFloat<float, kOp>>;
};
template <ReduceOp kOp>
struct ElementOf<DType::float64, kOp> {
  using type =
      std::conditional_t<kOrders<DType::float64, kOp>,
                         OrderedFloat<std::uint64_t, 0x7FF0000000000000U, 0x0008000000000000U, kOp == ReduceOp::min>,
                         PlainFloat<double, kOp>>;
};
template <ReduceOp kOp>
struct ElementOf<DType::int8, kOp> {
  using type = Integer<std::int8_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::uint8, kOp> {
  using type = Integer<std::uint8_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::int32, kOp> {
  using type = Integer<std::int32_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::uint32, kOp> {
  using type = Integer<std::uint32_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::int64, kOp> {
  using type = Integer<std::int64_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::uint64, kOp> {
  using type = Integer<std::uint64_t, kOp>;
};

template <DType kDType, ReduceOp kOp>
using Element = typename ElementOf<kDType, kOp>::type;

}  // namespace tributary::kernels::cuda

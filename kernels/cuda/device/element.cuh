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

/// Returns a word whose third byte is the quotient value / d, rounded toward zero, for any divisor d; `multiplier` is
/// 2^16 / d + 1, rounded down. value * multiplier is value / d * 2^16 and at most value more, which is less than
/// 2^16 / d: too little to reach the next quotient. An addition of 2^16 - 1 rounds negative quotients up.
template <class T>
TRIBUTARY_DEVICE std::uint32_t byte_quotient(T value, std::uint32_t multiplier) {
  static_assert(sizeof(T) == 1);
  const auto word = static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
  return word * multiplier + (std::is_signed_v<T> ? word >> 16 : 0U);
}

/// The operators of integers, which wrap; 8 and 16 bits are combined in 32 bits.
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
    if constexpr (kOp == ReduceOp::band) return a & b;
    if constexpr (kOp == ReduceOp::bor || kOp == ReduceOp::lor) return a | b;
    if constexpr (kOp == ReduceOp::bxor) return a ^ b;
    if constexpr (kOp == ReduceOp::land) return a != 0 ? b : a;
    if constexpr (kOp == ReduceOp::lxor) return (a != 0) != (b != 0);
    if constexpr (kOp == ReduceOp::prod)
      return static_cast<Accumulator>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    return static_cast<Accumulator>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
  static TRIBUTARY_DEVICE T store(Accumulator value, const ReduceArguments& arguments) {
    const T wrapped = static_cast<T>(value);
    if constexpr (is_logical(kOp)) return wrapped != 0;
    if constexpr (kOp != ReduceOp::avg) return wrapped;
    if (arguments.divisor == 1) return wrapped;
    if constexpr (sizeof(T) == 1) {
      return static_cast<T>(byte_quotient(wrapped, static_cast<std::uint32_t>(arguments.reciprocal.multiplier)) >> 16);
    } else if constexpr (std::is_signed_v<T>) {
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

// ---- Several elements in one word, for whole vectors.

/// min and max of two neighbouring float16 or bfloat16, by one instruction for both: IEEE 754-2019 minimum and maximum.
/// The host takes them one by one.
template <DType kDType, ReduceOp kOp, class Single>
struct OrderedPair {
  using Stored = std::uint32_t;
  using Accumulator = std::uint32_t;
  static constexpr std::uint32_t kBoth = 0x00010001U;

  static TRIBUTARY_DEVICE Accumulator load(Stored pair) { return pair; }
  static TRIBUTARY_DEVICE Accumulator combine(Accumulator a, Accumulator b) {
#if defined(__CUDA_ARCH__)
    using Pair = std::conditional_t<kDType == DType::float16, __half2, __nv_bfloat162>;
    const Pair x = bits_as<Pair>(a), y = bits_as<Pair>(b);
    return bits_as<std::uint32_t>(kOp == ReduceOp::min ? __hmin2_nan(x, y) : __hmax2_nan(x, y));
#else
    const auto one = [](std::uint32_t x, std::uint32_t y) {
      const auto key =
          Single::combine(Single::load(static_cast<std::uint16_t>(x)), Single::load(static_cast<std::uint16_t>(y)));
      return std::uint32_t{Single::store(key, {})};
    };
    return one(a & 0xFFFF, b & 0xFFFF) | one(a >> 16, b >> 16) << 16;
#endif
  }
  /// A single input is stored without a combination, so this makes its NaN quiet: the addition carries into the sign's
  /// place if the magnitude is above infinity.
  static TRIBUTARY_DEVICE Stored store(Accumulator pair, const ReduceArguments&) {
    constexpr std::uint32_t kLargest = SmallFloat<kDType>::kLargestBits, kQuiet = SmallFloat<kDType>::kQuietBit;
    const std::uint32_t nan = ((pair & 0x7FFFU * kBoth) + (0x7FFFU - kLargest) * kBoth) & 0x8000U * kBoth;
    return pair | nan / (0x8000U / kQuiet);
  }
};

/// Sum and average of four neighbouring bytes, in two words with a sum in each half: 64 inputs do not overflow a half.
template <class T, ReduceOp kOp>
struct FourBytes {
  using Stored = std::uint32_t;
  struct Accumulator {
    std::uint32_t even;  // the sums of bytes 0 and 2
    std::uint32_t odd;   // the sums of bytes 1 and 3
  };
  static constexpr std::uint32_t kBytes = 0x00FF00FFU;
  static_assert(kInputsMax * 0xFF <= 0xFFFF);

  static TRIBUTARY_DEVICE Accumulator load(Stored four) { return {four & kBytes, (four >> 8) & kBytes}; }
  static TRIBUTARY_DEVICE Accumulator combine(Accumulator a, Accumulator b) { return {a.even + b.even, a.odd + b.odd}; }
  static TRIBUTARY_DEVICE Stored store(Accumulator sums, const ReduceArguments& arguments) {
    if constexpr (kOp == ReduceOp::sum) return (sums.even & kBytes) | (sums.odd & kBytes) << 8;
    const auto by = static_cast<std::uint32_t>(arguments.reciprocal.multiplier);
    return bytes_of_words<2>(byte_quotient(static_cast<T>(sums.even), by), byte_quotient(static_cast<T>(sums.odd), by),
                             byte_quotient(static_cast<T>(sums.even >> 16), by),
                             byte_quotient(static_cast<T>(sums.odd >> 16), by));
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
struct ElementOf<DType::int16, kOp> {
  using type = Integer<std::int16_t, kOp>;
};
template <ReduceOp kOp>
struct ElementOf<DType::uint16, kOp> {
  using type = Integer<std::uint16_t, kOp>;
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

// The instruction for two 16-bit floats exists from compute capability 8.0 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool kHasPairs = false;
#else
inline constexpr bool kHasPairs = true;
#endif

/// The class for whole vectors: the class of one element, or of several elements in a word.
template <DType kDType, ReduceOp kOp>
struct VectorElementOf {
  using type = Element<kDType, kOp>;
};
template <DType kDType, ReduceOp kOp>
  requires(kHasPairs && (kDType == DType::float16 || kDType == DType::bfloat16) && kOrders<kDType, kOp>)
struct VectorElementOf<kDType, kOp> {
  using type = OrderedPair<kDType, kOp, Element<kDType, kOp>>;
};
template <DType kDType, ReduceOp kOp>
  requires((kDType == DType::int8 || kDType == DType::uint8) && (kOp == ReduceOp::sum || kOp == ReduceOp::avg))
struct VectorElementOf<kDType, kOp> {
  using type = FourBytes<typename Element<kDType, kOp>::Stored, kOp>;
};

template <DType kDType, ReduceOp kOp>
using VectorElement = typename VectorElementOf<kDType, kOp>::type;

}  // namespace tributary::kernels::cuda

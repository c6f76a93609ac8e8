// The operations that vector instruction sets lack for some lane types: wrapping products, and division by a constant
// known only at run time. Included once per target.

// ---- Wrapping products.

HWY_INLINE Vec<std::uint64_t> multiply_wrapping(Vec<std::uint64_t> a, Vec<std::uint64_t> b) {
#if HWY_TARGET == HWY_AVX3 || HWY_HAVE_SCALABLE
  return hn::Mul(a, b);
#else
  // The product of the two upper halves begins at bit 64 and is not needed; the two cross products begin at bit 32.
  const auto a32 = as<std::uint32_t>(a);
  const auto b32 = as<std::uint32_t>(b);
  const auto low = hn::MulEven(a32, b32);
  const auto crossed = hn::Add(hn::MulEven(as<std::uint32_t>(hn::ShiftRight<32>(a)), b32),
                               hn::MulEven(a32, as<std::uint32_t>(hn::ShiftRight<32>(b))));
  return hn::Add(low, hn::ShiftLeft<32>(crossed));
#endif
}

HWY_INLINE Vec<std::uint32_t> multiply_wrapping(Vec<std::uint32_t> a, Vec<std::uint32_t> b) {
  return hn::Mul(a, b);
}

HWY_INLINE Vec<std::uint16_t> multiply_wrapping(Vec<std::uint16_t> a, Vec<std::uint16_t> b) {
  return hn::Mul(a, b);
}

HWY_INLINE Vec<std::uint8_t> multiply_wrapping(Vec<std::uint8_t> a, Vec<std::uint8_t> b) {
  const auto low_byte = set<std::uint16_t>(0x00FF);
  const auto a16 = as<std::uint16_t>(a);
  const auto b16 = as<std::uint16_t>(b);
  const auto even = hn::And(hn::Mul(a16, b16), low_byte);
  const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::AndNot(low_byte, b16));
  return as<std::uint8_t>(hn::Or(even, odd));
}

template <class T>
HWY_INLINE Vec<T> multiply(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::Mul(a, b);
  } else {
    using U = std::make_unsigned_t<T>;
    return as<T>(multiply_wrapping(as<U>(a), as<U>(b)));
  }
}

// ---- The upper half of an unsigned product.

HWY_INLINE Vec<std::uint16_t> multiply_high(Vec<std::uint16_t> a, Vec<std::uint16_t> b) {
  return hn::MulHigh(a, b);
}

HWY_INLINE Vec<std::uint32_t> multiply_high(Vec<std::uint32_t> a, Vec<std::uint32_t> b) {
  const auto even = hn::ShiftRight<32>(hn::MulEven(a, b));
  const auto upper = [](Vec<std::uint32_t> v)
                         HWY_ATTR { return as<std::uint32_t>(hn::ShiftRight<32>(as<std::uint64_t>(v))); };
  const auto odd = hn::MulEven(upper(a), upper(b));
  return hn::OddEven(as<std::uint32_t>(odd), as<std::uint32_t>(even));
}

HWY_INLINE Vec<std::uint64_t> multiply_high(Vec<std::uint64_t> a, Vec<std::uint64_t> b) {
  const auto a_low = as<std::uint32_t>(a);
  const auto b_low = as<std::uint32_t>(b);
  const auto a_high = as<std::uint32_t>(hn::ShiftRight<32>(a));
  const auto b_high = as<std::uint32_t>(hn::ShiftRight<32>(b));
  const auto low_32 = set<std::uint64_t>(0xFFFFFFFF);
  // Each of these sums fits in 64 bits: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
  const auto middle = hn::Add(hn::MulEven(a_high, b_low), hn::ShiftRight<32>(hn::MulEven(a_low, b_low)));
  const auto crossed = hn::Add(hn::MulEven(a_low, b_high), hn::And(middle, low_32));
  return hn::Add(hn::Add(hn::MulEven(a_high, b_high), hn::ShiftRight<32>(middle)), hn::ShiftRight<32>(crossed));
}

// ---- Truncating division by a constant known only at run time: one product and two shifts replace the division of
// each element. Source: T. Granlund, P. L. Montgomery, "Division by Invariant Integers using Multiplication", PLDI
// 1994, figure 4.1.

template <class U>
struct Reciprocal {
  U multiplier;
  int shift_first;
  int shift_second;
};

template <class U>
HWY_INLINE Reciprocal<U> reciprocal_of(std::uint32_t divisor) {
  int log = 0;  // becomes the smallest number with 2^log >= divisor
  while (log < 32 && (std::uint64_t{1} << log) < divisor) ++log;
  const std::uint64_t excess = (std::uint64_t{1} << log) - divisor;
  // floor(excess * 2^bits / divisor), digit by digit: 64 bits are two digits of 32. The excess is smaller than the
  // divisor.
  constexpr int kDigit = sizeof(U) == 8 ? 32 : 8 * static_cast<int>(sizeof(U));
  std::uint64_t quotient = (excess << kDigit) / divisor;
  if constexpr (sizeof(U) == 8) quotient = (quotient << 32) | ((((excess << 32) % divisor) << 32) / divisor);
  return {static_cast<U>(quotient + 1), log > 0 ? 1 : 0, log > 0 ? log - 1 : 0};
}

template <class U>
HWY_INLINE Vec<U> shift_right(Vec<U> value, int bits) {
#if HWY_HAVE_SCALABLE
  return hn::ShiftRightSame(value, static_cast<U>(bits));
#else
  return hn::ShiftRightSame(value, bits);
#endif
}

template <class U>
HWY_INLINE Vec<U> divide_unsigned(Vec<U> value, Reciprocal<U> by) {
  const auto product = multiply_high(value, set<U>(by.multiplier));
  const auto rest = shift_right<U>(hn::Sub(value, product), by.shift_first);
  return shift_right<U>(hn::Add(product, rest), by.shift_second);
}

HWY_INLINE Vec<std::uint8_t> divide_bytes(Vec<std::uint8_t> value, Reciprocal<std::uint16_t> by) {
  const auto pairs = as<std::uint16_t>(value);
  const auto even = divide_unsigned<std::uint16_t>(hn::And(pairs, set<std::uint16_t>(0x00FF)), by);
  const auto odd = divide_unsigned<std::uint16_t>(hn::ShiftRight<8>(pairs), by);
  return as<std::uint8_t>(hn::Or(even, hn::ShiftLeft<8>(odd)));
}

/// Divides lanes of T by one number: floats as IEEE 754 does, integers truncating toward zero.
template <class T>
class Divider {
 public:
  explicit HWY_INLINE Divider(std::uint32_t divisor) : divisor_(static_cast<T>(divisor)) {}
  HWY_INLINE Vec<T> operator()(Vec<T> value) const { return hn::Div(value, set<T>(divisor_)); }

 private:
  T divisor_;
};

template <class T>
  requires std::is_integral_v<T>
class Divider<T> {
  using U = std::make_unsigned_t<T>;
  using R = std::conditional_t<sizeof(T) == 1, std::uint16_t, U>;  // 8-bit lanes are divided as 16-bit ones

 public:
  // An element of 8 or 16 bits divided by a number above its range is 0, so all such divisors may be replaced by one.
  static constexpr std::uint32_t kDivisorMax = sizeof(T) == 1 ? 1U << 8 : sizeof(T) == 2 ? 1U << 16 : ~0U;
  explicit HWY_INLINE Divider(std::uint32_t divisor)
      : reciprocal_(reciprocal_of<R>(divisor > kDivisorMax ? kDivisorMax : divisor)) {}

  HWY_INLINE Vec<T> operator()(Vec<T> value) const {
    if constexpr (std::is_signed_v<T>) {
      const auto sign = hn::BroadcastSignBit(value);
      const auto magnitude = as<U>(hn::Sub(hn::Xor(value, sign), sign));
      return hn::Sub(hn::Xor(as<T>(divide(magnitude)), sign), sign);
    } else {
      return divide(value);
    }
  }

 private:
  HWY_INLINE Vec<U> divide(Vec<U> value) const {
    if constexpr (sizeof(T) == 1) {
      return divide_bytes(value, reciprocal_);
    } else {
      return divide_unsigned<U>(value, reciprocal_);
    }
  }
  Reciprocal<R> reciprocal_;
};

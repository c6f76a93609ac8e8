#include "client/cli/perf/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

constexpr std::int64_t kSpreadMax = 509;    // values for sums are in [-254, 254] if the dtype has this range
constexpr std::uint32_t kSummandsMax = 64;  // the most ranks with a value other than 0 in one sum of floats
constexpr std::uint32_t kFactorsMax = 4;    // the most ranks with an exponent other than 0 in one product of floats

/// A small float, as bits. The pattern's values are exact in it, so the conversion needs no rounding.
template <int ExponentBits, int MantissaBits, class Bits>
struct SmallFloat {
  Bits bits = 0;
  SmallFloat() = default;
  explicit SmallFloat(double value) {
    if (value == 0) return;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);  // in the interval [0.5, 1)
    const int bias = (1 << (ExponentBits - 1)) - 1;
    const auto mantissa = static_cast<unsigned>(std::ldexp(2 * fraction - 1, MantissaBits));
    const auto biased = static_cast<unsigned>(exponent - 1 + bias);
    bits =
        static_cast<Bits>((value < 0 ? 1U << (ExponentBits + MantissaBits) : 0U) | biased << MantissaBits | mantissa);
  }
};
using Float16 = SmallFloat<5, 10, std::uint16_t>;
using BFloat16 = SmallFloat<8, 7, std::uint16_t>;
using Float8E4M3 = SmallFloat<4, 3, std::uint8_t>;
using Float8E5M2 = SmallFloat<5, 2, std::uint8_t>;

/// Returns the bound up to which every whole number is exact; for integers, which wrap, the bound of averages.
template <class T>
constexpr std::int64_t whole_max() {
  if constexpr (std::is_same_v<T, Float16>) return 1 << 11;
  if constexpr (std::is_same_v<T, BFloat16>) return 1 << 8;
  if constexpr (std::is_same_v<T, Float8E4M3>) return 1 << 4;
  if constexpr (std::is_same_v<T, Float8E5M2>) return 1 << 3;
  if constexpr (std::is_same_v<T, float>) return 1 << 24;
  if constexpr (sizeof(T) == 1) return 127;
  if constexpr (sizeof(T) == 2) return 32767;
  return 1LL << 30;
}

std::uint32_t mix(std::uint64_t i, std::uint64_t rank) {
  return static_cast<std::uint32_t>(((i + 1) * 0x9E3779B97F4A7C15ULL + (rank + 1) * 0xC2B2AE3D27D4EB4FULL) >> 33);
}

/// Returns a value from -(width - 1) / 2 to (width - 1) / 2.
std::int64_t spread(std::uint32_t number, std::int64_t width) {
  return static_cast<std::int64_t>(number % static_cast<std::uint64_t>(width)) - (width - 1) / 2;
}

/// Chooses at most `parts_max` ranks for each element, different ranks for different elements.
bool takes_part(std::uint64_t i, std::uint32_t rank, std::uint32_t ranks, std::uint32_t parts_max) {
  return ranks <= parts_max || (rank + i) % ((ranks + parts_max - 1) / parts_max) == 0;
}

template <class T>
struct Values {
  std::uint32_t ranks;
  ReduceOp op;
  static constexpr bool kInteger = std::is_integral_v<T>;

  [[nodiscard]] double of(std::uint64_t i, std::uint32_t rank) const {
    switch (op) {
      case ReduceOp::sum:
        return static_cast<double>(summand(i, rank));
      case ReduceOp::prod:
        return factor(i, rank);
      case ReduceOp::avg:
        return static_cast<double>(share(i, rank));
      case ReduceOp::land:
      case ReduceOp::lor:
      case ReduceOp::lxor:
        return truth_value(i, rank);
      default:
        return static_cast<double>(spread(mix(i, rank), width(1)));
    }
  }

  /// Returns values that make every outcome of a logical operator likely: many zeros for "or", and few for "and".
  [[nodiscard]] double truth_value(std::uint64_t i, std::uint32_t rank) const {
    const std::uint32_t number = mix(i, rank);
    const bool zero = op == ReduceOp::lxor ? number % 2 == 0 : (number % (2 * ranks) == 0) == (op == ReduceOp::land);
    return zero ? 0 : 1 + static_cast<double>(number % 100);
  }

  /// Returns the greatest width of the values if `summands` of them are added.
  [[nodiscard]] static std::int64_t width(std::int64_t summands) {
    if (kInteger) return kSpreadMax;
    return std::clamp<std::int64_t>(2 * whole_max<T>() / summands - 1, 2, kSpreadMax);
  }

  [[nodiscard]] std::int64_t summand(std::uint64_t i, std::uint32_t rank) const {
    if (kInteger) return spread(mix(i, rank), kSpreadMax);
    const std::uint32_t most = static_cast<std::uint32_t>(std::min<std::int64_t>(kSummandsMax, whole_max<T>() / 2));
    if (!takes_part(i, rank, ranks, most)) return 0;
    return spread(mix(i, rank), width(std::min(ranks, most) + 1));
  }

  [[nodiscard]] double factor(std::uint64_t i, std::uint32_t rank) const {
    if (kInteger) return static_cast<double>(2 * static_cast<int>(mix(i, rank) % 5) - 3);  // odd: no product is 0
    const std::uint32_t number = mix(i, rank);
    const double sign = (number & 1) != 0 ? -1 : 1;
    if (!takes_part(i, rank, ranks, kFactorsMax)) return sign;
    return std::ldexp(sign, static_cast<int>(number >> 1) % 3 - 1);
  }

  /// Returns a rank's part of an average. The parts of all ranks add up to ranks times a whole number: of two
  /// neighbours, one is above this number by as much as the other is below.
  [[nodiscard]] std::int64_t share(std::uint64_t i, std::uint32_t rank) const {
    const std::int64_t room = whole_max<T>() / ranks / 2;  // half for the average, half for the distance from it
    const std::int64_t most = std::min<std::int64_t>(room, kSpreadMax / 2);
    if (most == 0) return 0;
    const bool has_neighbour = (rank ^ 1U) < ranks;
    const std::int64_t distance = has_neighbour ? spread(mix(i, rank / 2), most) : 0;
    const std::int64_t average = std::is_unsigned_v<T> ? most : spread(mix(i, 1U << 20), most);
    return (rank & 1U) != 0 ? average - distance : average + distance;
  }

  [[nodiscard]] T result(std::uint64_t i) const {
    if constexpr (kInteger) {
      return integer_result(i);
    } else {
      return float_result(i);
    }
  }

  [[nodiscard]] static T to_element(double value) {
    if constexpr (kInteger) {
      return static_cast<T>(static_cast<std::int64_t>(value));
    } else {
      return static_cast<T>(value);
    }
  }

  [[nodiscard]] T float_result(std::uint64_t i) const {
    double total = of(i, 0);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const double next = of(i, rank);
      if (op == ReduceOp::prod) {
        total *= next;
      } else if (op == ReduceOp::min) {
        total = std::min(total, next);
      } else if (op == ReduceOp::max) {
        total = std::max(total, next);
      } else {
        total += next;
      }
    }
    return to_element(op == ReduceOp::avg ? total / ranks : total);
  }

  /// Combines two integers by an operator on their bits or truth values; of another operator it returns `a`.
  [[nodiscard]] T bits_of(T a, T b) const {
    switch (op) {
      case ReduceOp::band:
        return static_cast<T>(a & b);
      case ReduceOp::bor:
        return static_cast<T>(a | b);
      case ReduceOp::bxor:
        return static_cast<T>(a ^ b);
      case ReduceOp::land:
        return static_cast<T>(a != 0 && b != 0);
      case ReduceOp::lor:
        return static_cast<T>(a != 0 || b != 0);
      case ReduceOp::lxor:
        return static_cast<T>((a != 0) != (b != 0));
      default:
        return a;
    }
  }

  /// Returns a sum or product of integers, which wraps, or another reduction of them. It computes with unsigned numbers, because C++ defines how they
  /// wrap.
  [[nodiscard]] T integer_result(std::uint64_t i) const {
    T first = to_element(of(i, 0));
    T bits = first;
    auto total = static_cast<std::uint64_t>(first);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const T next = to_element(of(i, rank));
      first = op == ReduceOp::min ? std::min(first, next) : std::max(first, next);
      bits = bits_of(bits, next);
      total =
          op == ReduceOp::prod ? total * static_cast<std::uint64_t>(next) : total + static_cast<std::uint64_t>(next);
    }
    if (op == ReduceOp::min || op == ReduceOp::max) return first;
    if (op > ReduceOp::avg) return bits;
    const T wrapped = static_cast<T>(total);
    if (op != ReduceOp::avg) return wrapped;
    return static_cast<T>(static_cast<std::int64_t>(wrapped) / static_cast<std::int64_t>(ranks));
  }
};

template <class T, class Make>
std::vector<std::byte> table(Make make) {
  std::vector<std::byte> bytes(kPatternPeriod * sizeof(T));
  for (std::size_t i = 0; i < kPatternPeriod; ++i) {
    const T element = make(i);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return bytes;
}

template <class Visit>
std::vector<std::byte> with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::int8:
      return visit(std::int8_t{});
    case DType::uint8:
      return visit(std::uint8_t{});
    case DType::int32:
      return visit(std::int32_t{});
    case DType::uint32:
      return visit(std::uint32_t{});
    case DType::int64:
      return visit(std::int64_t{});
    case DType::uint64:
      return visit(std::uint64_t{});
    case DType::int16:
      return visit(std::int16_t{});
    case DType::uint16:
      return visit(std::uint16_t{});
    case DType::float16:
      return visit(Float16{});
    case DType::bfloat16:
      return visit(BFloat16{});
    case DType::float32:
      return visit(float{});
    case DType::float64:
      return visit(double{});
    case DType::float8_e4m3:
      return visit(Float8E4M3{});
    case DType::float8_e5m2:
      return visit(Float8E5M2{});
  }
  return {};
}

/// Calls `piece` with matching parts of the repeated period and of `data`, until `piece` returns false.
template <class Bytes, class Piece>
void walk(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first, Bytes data, Piece piece) {
  TRIBUTARY_ASSERT(element_bytes > 0 && !period.empty() && period.size() % element_bytes == 0,
                   "a pattern of {} bytes for elements of {} bytes", period.size(), element_bytes);
  std::size_t from = first * element_bytes % period.size();
  while (!data.empty()) {
    TRIBUTARY_ASSERT(from < period.size(), "byte {} of a pattern of {} bytes", from, period.size());
    const std::size_t length = std::min(period.size() - from, data.size());
    piece(period.subspan(from, length), data.first(length));
    data = data.subspan(length);
    from = 0;
  }
}

}  // namespace

std::vector<std::byte> Pattern::contribution(std::uint32_t rank) const {
  return with_type(dtype_, [&]<class T>(T) {
    const Values<T> values{ranks_, op_};
    return table<T>([&](std::size_t i) { return values.to_element(values.of(i, rank)); });
  });
}

std::vector<std::byte> Pattern::reduced() const {
  return with_type(dtype_, [&]<class T>(T) {
    const Values<T> values{ranks_, op_};
    return table<T>([&](std::size_t i) { return values.result(i); });
  });
}

void tile(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first, std::span<std::byte> out) {
  walk(period, element_bytes, first, out, [](std::span<const std::byte> from, std::span<std::byte> to) {
    std::memcpy(to.data(), from.data(), to.size());
  });
}

std::uint64_t count_wrong(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first,
                          std::span<const std::byte> data) {
  std::uint64_t wrong = 0;
  walk(period, element_bytes, first, data, [&](std::span<const std::byte> right, std::span<const std::byte> seen) {
    if (std::memcmp(right.data(), seen.data(), seen.size()) == 0) return;
    for (std::size_t at = 0; at + element_bytes <= seen.size(); at += element_bytes)
      wrong += std::memcmp(right.data() + at, seen.data() + at, element_bytes) != 0 ? 1U : 0U;
  });
  return wrong;
}

}  // namespace tributary::cli

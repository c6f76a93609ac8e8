#include "tests/simulation/cluster/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tributary/protocol/numerics.h"

namespace tributary::simulation {
namespace {

// Values are small integers: every sum, product and average over a few ranks is exact in every dtype used here, in any
// order. So rounding cannot hide a wrong contribution (missing, doubled, or of another segment).
constexpr DType kDTypes[] = {DType::int32,   DType::float32, DType::int64, DType::float64, DType::bfloat16,
                             DType::float16, DType::uint8,   DType::int16, DType::uint16};

constexpr std::uint32_t kRanksForNarrowFloats = 19;  // 13 is the greatest value, and 19 * 13 < 2^8

std::int64_t element(std::uint64_t salt, std::uint32_t rank, std::uint64_t index) {
  std::uint64_t x = salt * 0x9E3779B97F4A7C15ULL + rank * 0xBF58476D1CE4E5B9ULL + index * 0x94D049BB133111EBULL;
  x ^= x >> 31U;
  x *= 0xD6E8FEB86659FD93ULL;
  x ^= x >> 32U;
  return static_cast<std::int64_t>(x % 13) + 1;
}

std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>(bits >> 16U);
}
std::uint16_t to_float16(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store(std::byte* at, DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
      return put(at, static_cast<std::uint8_t>(value));
    case DType::int16:
    case DType::uint16:
      return put(at, static_cast<std::uint16_t>(value));
    case DType::int32:
    case DType::uint32:
      return put(at, static_cast<std::int32_t>(value));
    case DType::int64:
    case DType::uint64:
      return put(at, value);
    case DType::float16:
      return put(at, to_float16(static_cast<float>(value)));
    case DType::bfloat16:
      return put(at, to_bfloat16(static_cast<float>(value)));
    case DType::float32:
      return put(at, static_cast<float>(value));
    case DType::float64:
      return put(at, static_cast<double>(value));
    default:
      return;
  }
}

// Values for exact sums: small integers times powers of two that lie far apart, so that every order of rounded
// additions gives other bits. The sums are counted in units of the least power.
struct Spread {
  int step;       // powers: -step, 0, step
  int precision;  // bits of the type
};

Spread spread_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {6, 11};
    case DType::bfloat16:
      return {12, 8};
    case DType::float32:
      return {30, 24};
    default:
      return {40, 53};
  }
}

__extension__ using Units = __int128;

Units units_of(const Signature& s, std::uint64_t salt, std::uint32_t rank, std::uint64_t index) {
  const auto power = static_cast<unsigned>(element(salt + 1, rank, index) % 3 * spread_of(s.dtype).step);
  return (Units{element(salt, rank, index)} - 7) * (Units{1} << power);
}

/// Stores `units` of 2^exponent, rounded once to the type.
void store_rounded(std::byte* at, DType dtype, Units units, int exponent) {
  const Spread spread = spread_of(dtype);
  if (dtype == DType::float64) return put(at, std::ldexp(static_cast<double>(units), exponent));
  if (dtype == DType::float32) return put(at, std::ldexp(static_cast<float>(units), exponent));
  const auto value = static_cast<double>(units);  // exact: the smaller types spread over few bits
  double rounded = value;
  if (value != 0) {
    const double large = std::ldexp(1.5, std::ilogb(value) + 53 - spread.precision);
    rounded = (value + large) - large;
  }
  const auto result = static_cast<float>(std::ldexp(rounded, exponent));
  put(at, dtype == DType::float16 ? to_float16(result) : to_bfloat16(result));
}

/// Returns a rank's factor of an ordered product. float32 and float64 round the products, so the order shows in their
/// bits; the products of up to kRanksForNarrowProducts of the others are exact in float64.
double factor_of(const Signature& s, std::uint64_t salt, std::uint32_t rank, std::uint64_t index) {
  const auto value = static_cast<double>(element(salt, rank, index) + 6);
  if (s.dtype == DType::float64) return value / 7;
  if (s.dtype == DType::float32) return static_cast<double>(static_cast<float>(value / 7));
  return value / 8;
}

constexpr std::uint32_t kRanksForNarrowProducts = 9;

/// Stores a factor, which needs no rounding.
void store_factor(std::byte* at, DType dtype, double value) {
  if (dtype == DType::float64) return put(at, value);
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::float32) return put(at, narrow);
  put(at, dtype == DType::float16 ? to_float16(narrow) : to_bfloat16(narrow));
}

void store_product(std::byte* at, const Signature& s, std::uint64_t salt, std::uint64_t index, std::uint32_t nranks) {
  if (s.dtype == DType::float16 || s.dtype == DType::bfloat16) {
    Units product = 1;
    for (std::uint32_t r = 0; r < nranks; ++r) product *= element(salt, r, index) + 6;
    return store_rounded(at, s.dtype, product, -3 * static_cast<int>(nranks));
  }
  double product = 1;
  for (std::uint32_t r = 0; r < nranks; ++r) product *= factor_of(s, salt, r, index);
  s.dtype == DType::float64 ? put(at, product) : put(at, static_cast<float>(product));
}

bool is_exact_sum(const Signature& s) {
  return s.op == kExactSum || s.op == kExactSumOfHosts;
}

/// Returns the number of inputs of a rank: in an exact sum between hosts it acts for a few ranks.
std::uint32_t inputs_of(const Signature& s, std::uint32_t rank) {
  return is_exact_of_hosts(s.op) ? 1 + (rank * 3 + static_cast<std::uint32_t>(s.count)) % 4 : 1;
}
std::uint32_t inputs_of_all(const Signature& s, std::uint32_t nranks) {
  std::uint32_t all = 0;
  for (std::uint32_t rank = 0; rank < nranks; ++rank) all += inputs_of(s, rank);
  return all;
}
/// Returns a number of its own for each input, which stands for a rank where values are made.
std::uint32_t number_of(std::uint32_t rank, std::uint32_t input) {
  return rank + 10'000 * input;
}

/// The average of these values is a small whole number in every type.
std::int64_t share(std::uint64_t salt, std::uint32_t number, std::uint64_t index) {
  return element(salt, number, index) % 3 + 1;
}

void store_input(std::byte* at, const Signature& s, std::uint64_t salt, std::uint32_t rank, std::uint64_t index,
                 std::uint32_t nranks) {
  if (s.op == kExactAverageOfHosts) return store(at, s.dtype, share(salt, rank, index) * inputs_of_all(s, nranks));
  if (is_exact_sum(s)) return store_rounded(at, s.dtype, units_of(s, salt, rank, index), -spread_of(s.dtype).step);
  if (s.op == kOrderedProduct) return store_factor(at, s.dtype, factor_of(s, salt, rank, index));
  store(at, s.dtype, element(salt, rank, index) * (s.op == kExactAverage ? std::int64_t{nranks} : 1));
}

struct Shape {
  std::uint64_t send = 0, recv = 0;  // elements
  std::uint64_t input_at = 0;        // in place: where the input begins, in elements of recv
};

Shape shape_of(const Signature& s, std::uint32_t rank, std::uint32_t nranks) {
  const std::uint64_t n = s.count, all = s.count * nranks;
  const bool root = s.root == rank;
  switch (s.collective) {
    case Collective::all_reduce:
      return {n, n, 0};
    case Collective::reduce:
      return {n, root ? n : 0, 0};
    case Collective::broadcast:
      return {root ? n : 0, n, 0};
    case Collective::reduce_scatter:
      return {all, n, 0};
    case Collective::all_gather:
      return {n, all, rank * n};
    case Collective::barrier:
      return {0, 0, 0};
    case Collective::all_to_all:
      return {all, all, 0};
    case Collective::gather:
      return {n, root ? all : 0, rank * n};
    case Collective::scatter:
      return {root ? all : 0, n, 0};
  }
  return {};
}

std::int64_t combined_bits(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::band:
      return a & b;
    case ReduceOp::bor:
      return a | b;
    case ReduceOp::bxor:
      return a ^ b;
    case ReduceOp::lxor:
      return (a != 0) != (b != 0) ? 1 : 0;
    default:
      return 1;  // a logical "and" or "or": no element is 0
  }
}

std::int64_t reduced(const Signature& s, std::uint64_t salt, std::uint64_t index, std::uint32_t nranks) {
  std::int64_t value = element(salt, 0, index);
  for (std::uint32_t r = 1; r < nranks; ++r) {
    const std::int64_t x = element(salt, r, index);
    switch (s.op) {
      default:  // a sum or an average
        value = s.op >= ReduceOp::band && s.op <= ReduceOp::lxor ? combined_bits(s.op, value, x) : value + x;
        break;
      case ReduceOp::prod:
        value *= x;
        break;
      case ReduceOp::min:
        value = std::min(value, x);
        break;
      case ReduceOp::max:
        value = std::max(value, x);
        break;
    }
  }
  return value;
}

/// Sums of a few products of these multipliers are exact in every type.
std::int64_t multiplier(std::uint32_t rank) {
  return 1 + rank % 3;
}
constexpr std::uint32_t kRanksForNarrowMultiples = 9;  // 13 * (1 + 2 + 3) * 3 < 2^8

std::int64_t sum_of_multiples(std::uint64_t salt, std::uint64_t index, std::uint32_t nranks) {
  std::int64_t sum = 0;
  for (std::uint32_t r = 0; r < nranks; ++r) sum += element(salt, r, index) * multiplier(r);
  return sum;
}

std::int64_t expected(const Signature& s, std::uint64_t salt, std::uint64_t index, std::uint32_t rank,
                      std::uint32_t nranks) {
  const std::uint64_t n = s.count;
  switch (s.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reduced(s, salt, index, nranks);
    case Collective::reduce_scatter:
      return reduced(s, salt, rank * n + index, nranks);
    case Collective::broadcast:
      return element(salt, s.root, index);
    case Collective::all_gather:
    case Collective::gather:
      return element(salt, static_cast<std::uint32_t>(index / n), index % n);
    case Collective::all_to_all:
      return element(salt, static_cast<std::uint32_t>(index / n), rank * n + index % n);
    case Collective::scatter:
      return element(salt, s.root, rank * n + index);
    case Collective::barrier:
      return 0;
  }
  return 0;
}

void store_result(std::byte* at, const Call& call, std::uint64_t salt, std::uint64_t index, std::uint32_t rank,
                  std::uint32_t nranks) {
  const Signature& s = call.signature;
  const std::uint64_t first = s.collective == Collective::reduce_scatter ? rank * s.count : 0;
  if (call.multiplied) return store(at, s.dtype, sum_of_multiples(salt, first + index, nranks));
  if (s.op == kExactAverageOfHosts) {
    std::int64_t sum = 0;
    for (std::uint32_t r = 0; r < nranks; ++r) {
      for (std::uint32_t i = 0; i < inputs_of(s, r); ++i) sum += share(salt, number_of(r, i), first + index);
    }
    return store(at, s.dtype, sum);
  }
  if (is_exact_sum(s)) {
    Units sum = 0;
    for (std::uint32_t r = 0; r < nranks; ++r) {
      for (std::uint32_t i = 0; i < inputs_of(s, r); ++i) sum += units_of(s, salt, number_of(r, i), first + index);
    }
    return store_rounded(at, s.dtype, sum, -spread_of(s.dtype).step);
  }
  if (s.op == kOrderedProduct) return store_product(at, s, salt, first + index, nranks);
  const std::int64_t sum = expected(s, salt, index, rank, nranks);
  store(at, s.dtype, s.op == ReduceOp::avg && s.collective != Collective::barrier ? sum / nranks : sum);
}

constexpr ReduceOp kBitOps[] = {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor,
                                ReduceOp::land, ReduceOp::lor, ReduceOp::lxor};

/// Gives some sums of floats exact numerics, and makes some of them products.
void make_exact(Signature& s, std::uint64_t choice, std::uint32_t nranks) {
  constexpr ReduceOp kChoices[] = {kExactSum, kExactAverage, kOrderedProduct, kExactSumOfHosts, kExactAverageOfHosts};
  if (s.op != ReduceOp::sum || !is_float(s.dtype) || choice >= (nranks > 1 ? std::size(kChoices) : 3)) return;
  const bool narrow = s.dtype == DType::float16 || s.dtype == DType::bfloat16;
  if (kChoices[choice] == kOrderedProduct && narrow && nranks > kRanksForNarrowProducts) return;
  s.op = kChoices[choice];
}

}  // namespace

std::vector<Call> make_calls(std::mt19937_64& random, std::uint32_t nranks, const WorkloadSettings& settings) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  std::vector<Call> calls(settings.calls);
  for (Call& call : calls) {
    Signature& s = call.signature;
    s.collective = static_cast<Collective>(below(settings.direct ? 12 : 6) % kCollectiveCount);
    if (below(3) == 0) s.collective = Collective::all_reduce;
    if (settings.only) s.collective = *settings.only;
    s.dtype = kDTypes[below(std::size(kDTypes))];
    // A sum over many ranks needs more bits than these types have.
    if (nranks > kRanksForNarrowFloats && (s.dtype == DType::bfloat16 || s.dtype == DType::float16))
      s.dtype = DType::float32;
    const bool narrow = s.dtype == DType::float16 || s.dtype == DType::bfloat16 || s.dtype == DType::uint8;
    // Sums of few small integers are exact in 8 bits of significand; products are not, and averages only if they divide
    // without remainder.
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::sum, ReduceOp::prod};
    s.op = kOps[below(narrow || nranks > 6 ? 4 : 5)];  // a product of six is at most 13^6 < 2^24
    if (s.dtype == DType::int64 && below(3) == 0) s.op = ReduceOp::avg;
    if (!is_float(s.dtype) && below(3) == 0) s.op = kBitOps[below(std::size(kBitOps))];
    s.root = static_cast<std::uint32_t>(below(nranks));
    const std::uint64_t kind = below(6);
    s.count = kind == 0 ? below(3) : kind < 4 ? below(200) : below(settings.count_max) + 1;
    if (s.collective == Collective::barrier) s = {.collective = Collective::barrier};
    const bool reduces = s.collective == Collective::all_reduce || s.collective == Collective::reduce ||
                         s.collective == Collective::reduce_scatter;
    if (!reduces) s.op = ReduceOp::sum;
    if (reduces && settings.exact) make_exact(s, below(6), nranks);
    if (reduces && settings.exactly) {
      s.op = *settings.exactly;
      s.dtype = below(2) == 0 ? DType::float32 : DType::float64;
    }
    if (s.collective == Collective::all_reduce || s.collective == Collective::reduce_scatter ||
        s.collective == Collective::all_gather || s.collective == Collective::all_to_all) {
      s.root = 0;
    }
    call.in_place = s.collective != Collective::all_to_all && s.collective != Collective::barrier &&
                    (settings.always_in_place || below(3) == 0);
    const bool few = nranks <= kRanksForNarrowMultiples || !narrow;
    // Not a random number, so that the other calls stay as they are.
    call.multiplied = settings.multiplied && reduces && few && s.op == ReduceOp::sum && (&call - calls.data()) % 2 == 0;
  }
  return calls;
}

Buffers make_buffers(const Call& call, std::uint64_t salt, std::uint32_t rank, std::uint32_t nranks) {
  const Signature& s = call.signature;
  const Shape shape = shape_of(s, rank, nranks);
  const std::size_t size = size_of(s.dtype);
  Buffers b;
  // In place, the two buffers become one buffer, as long as the longer of the two; in it, the result of reduce_scatter
  // lies at rank * count.
  const bool in_place = call.in_place && shape.send > 0 && shape.recv > 0;
  b.recv.assign((in_place ? std::max(shape.send, shape.recv) : shape.recv) * size, std::byte{0xEE});
  if (!in_place) b.send.resize(shape.send * size);
  b.in_place_offset = in_place ? shape.input_at * size : 0;
  std::byte* input = in_place ? b.recv.data() + b.in_place_offset : b.send.data();
  for (std::uint64_t i = 0; i < shape.send; ++i) store_input(input + i * size, s, salt, rank, i, nranks);
  for (std::uint32_t other = 1; other < inputs_of(s, rank); ++other) {
    auto& bytes = b.others.emplace_back(shape.send * size);
    for (std::uint64_t i = 0; i < shape.send; ++i)
      store_input(bytes.data() + i * size, s, salt, number_of(rank, other), i, nranks);
  }
  return b;
}

std::array<std::byte, 8> factor_of(const Call& call, std::uint32_t rank) {
  std::array<std::byte, 8> factor{};
  store(factor.data(), call.signature.dtype, multiplier(rank));
  return factor;
}

std::uint64_t input_elements(const Call& call, std::uint32_t rank, std::uint32_t nranks) {
  return shape_of(call.signature, rank, nranks).send;
}

std::string check(const Call& call, const Buffers& b, std::uint64_t salt, std::uint32_t rank, std::uint32_t nranks) {
  const Signature& s = call.signature;
  const Shape shape = shape_of(s, rank, nranks);
  const std::size_t size = size_of(s.dtype);
  std::byte want[8]{};
  const bool in_place = b.send.empty() && call.in_place && shape.send > 0 && shape.recv > 0;
  for (std::uint64_t i = 0; i < b.send.size() / size; ++i) {
    store_input(want, s, salt, rank, i, nranks);
    if (std::memcmp(want, b.send.data() + i * size, size) != 0)
      return "input element " + std::to_string(i) + " was changed";
  }
  for (std::uint32_t other = 1; other < inputs_of(s, rank); ++other) {
    for (std::uint64_t i = 0; i < shape.send; ++i) {
      store_input(want, s, salt, number_of(rank, other), i, nranks);
      if (std::memcmp(want, b.others[other - 1].data() + i * size, size) != 0)
        return "element " + std::to_string(i) + " of a further input was changed";
    }
  }
  std::size_t result_at = 0;
  if (in_place && (s.collective == Collective::reduce_scatter || s.collective == Collective::scatter))
    result_at = rank * s.count * size;
  for (std::uint64_t i = 0; i < shape.recv; ++i) {
    store_result(want, call, salt, i, rank, nranks);
    if (std::memcmp(want, b.recv.data() + result_at + i * size, size) != 0)
      return "result element " + std::to_string(i) + " of " + std::to_string(shape.recv) + " is wrong";
  }
  return {};
}

}  // namespace tributary::simulation

#include "client/cli/nccl_check/values.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tributary::cli::nccl_check {
namespace {

using abi::DataType;
using abi::RedOp;

/// Returns 1 or 2 for products, else 0 or 1; with two ranks it returns up to 4.
int value(RedOp op, int rank, int ranks, unsigned seed, std::size_t index) {
  const auto mixed = static_cast<unsigned>(index) * 7U + static_cast<unsigned>(rank) * 3U + seed;
  if (op == RedOp::prod) return (mixed % static_cast<unsigned>(ranks)) == static_cast<unsigned>(rank) ? 2 : 1;
  const auto kinds = static_cast<unsigned>(std::max(2, kRanksMax / ranks + 1));
  return static_cast<int>((mixed ^ mixed >> 3) % kinds);
}

int reduced(RedOp op, int ranks, unsigned seed, std::size_t index) {
  int result = value(op, 0, ranks, seed, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const int next = value(op, rank, ranks, seed, index);
    switch (op) {
      case RedOp::sum:
      case RedOp::avg:
        result += next;
        break;
      case RedOp::prod:
        result *= next;
        break;
      case RedOp::max:
        result = std::max(result, next);
        break;
      case RedOp::min:
        result = std::min(result, next);
        break;
    }
  }
  return result;
}

/// Encodes a whole number; the format must represent it exactly.
std::uint32_t encode(std::uint32_t number, int exponent_bits, int mantissa_bits) {
  if (number == 0) return 0;
  const int exponent = static_cast<int>(std::bit_width(number)) - 1;
  const std::uint32_t bias = (1U << (exponent_bits - 1)) - 1;
  const std::uint32_t rest = number - (1U << exponent);
  const std::uint32_t mantissa =
      exponent > mantissa_bits ? rest >> (exponent - mantissa_bits) : rest << (mantissa_bits - exponent);
  return (static_cast<std::uint32_t>(exponent) + bias) << mantissa_bits | mantissa;
}

template <class T>
void put(std::span<std::byte> to, std::size_t index, T what) {
  std::memcpy(to.data() + index * sizeof what, &what, sizeof what);
}

void put_number(std::span<std::byte> to, DataType type, std::size_t index, int number) {
  const auto positive = static_cast<std::uint32_t>(number);
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
      return put(to, index, static_cast<std::uint8_t>(number));
    case DataType::int32:
    case DataType::uint32:
      return put(to, index, positive);
    case DataType::int64:
    case DataType::uint64:
      return put(to, index, std::uint64_t{positive});
    case DataType::float16:
      return put(to, index, static_cast<std::uint16_t>(encode(positive, 5, 10)));
    case DataType::bfloat16:
      return put(to, index, static_cast<std::uint16_t>(encode(positive, 8, 7)));
    case DataType::float32:
      return put(to, index, static_cast<float>(number));
    case DataType::float64:
      return put(to, index, static_cast<double>(number));
    case DataType::float8_e4m3:
      return put(to, index, static_cast<std::uint8_t>(encode(positive, 4, 3)));
    case DataType::float8_e5m2:
      return put(to, index, static_cast<std::uint8_t>(encode(positive, 5, 2)));
  }
}

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return 8;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    default:
      return 1;
  }
}

std::string name_of(DataType type) {
  constexpr const char* names[abi::kDataTypes] = {"int8",    "uint8",    "int32",       "uint32",
                                                  "int64",   "uint64",   "float16",     "float32",
                                                  "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return names[static_cast<std::size_t>(type)];
}

std::string name_of(RedOp op) {
  constexpr const char* names[abi::kRedOps] = {"sum", "prod", "max", "min", "avg"};
  return names[static_cast<std::size_t>(op)];
}

void fill(std::span<std::byte> to, DataType type, RedOp op, int rank, int ranks, unsigned seed) {
  for (std::size_t i = 0; i < to.size() / size_of(type); ++i) put_number(to, type, i, value(op, rank, ranks, seed, i));
}

void fill_result(std::span<std::byte> to, DataType type, RedOp op, int ranks, unsigned seed, std::size_t first) {
  for (std::size_t i = 0; i < to.size() / size_of(type); ++i) {
    put_number(to, type, i, reduced(op, ranks, seed, first + i));
  }
}

}  // namespace tributary::cli::nccl_check

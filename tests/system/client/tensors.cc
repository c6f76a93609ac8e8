#include "tests/system/client/tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/float_format.h"
#include "kernels/reference/reduce.h"

namespace tributary::test {
namespace {

/// The bound up to which integers, and so all sums, are exact.
int exact_limit(DType dtype) {
  switch (dtype) {
    case DType::float8_e5m2:
      return 8;
    case DType::float8_e4m3:
      return 16;
    case DType::int8:
      return 127;
    case DType::uint8:
    case DType::bfloat16:
      return 255;
    case DType::float16:
      return 2048;
    case DType::int16:
    case DType::uint16:
      return 30'000;
    default:
      return 1'000'000;
  }
}

bool has_sign(DType dtype) {
  return dtype != DType::uint8 && dtype != DType::uint16 && dtype != DType::uint32 && dtype != DType::uint64;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store_element(DType dtype, std::byte* at, int value) {
  switch (dtype) {
    case DType::int8:
      return store(at, static_cast<std::int8_t>(value));
    case DType::uint8:
      return store(at, static_cast<std::uint8_t>(value));
    case DType::int16:
      return store(at, static_cast<std::int16_t>(value));
    case DType::uint16:
      return store(at, static_cast<std::uint16_t>(value));
    case DType::int32:
      return store(at, static_cast<std::int32_t>(value));
    case DType::uint32:
      return store(at, static_cast<std::uint32_t>(value));
    case DType::int64:
      return store(at, static_cast<std::int64_t>(value));
    case DType::uint64:
      return store(at, static_cast<std::uint64_t>(value));
    case DType::float32:
      return store(at, static_cast<float>(value));
    case DType::float64:
      return store(at, static_cast<double>(value));
    default: {
      const std::uint32_t bits =
          kernels::reference::encode(kernels::reference::format_of(dtype), static_cast<float>(value));
      if (size_of(dtype) == 1) return store(at, static_cast<std::uint8_t>(bits));
      return store(at, static_cast<std::uint16_t>(bits));
    }
  }
}

int value_at(DType dtype, ReduceOp op, std::size_t index, int rank) {
  const int mixed = static_cast<int>((index * 7 + index / 64 + static_cast<std::size_t>(rank) * 13) % 1'000'003);
  if (op == ReduceOp::prod) return (mixed & 1) != 0 ? 2 : (has_sign(dtype) && (mixed & 2) != 0 ? -1 : 1);
  if (is_logical(op)) return mixed % (op == ReduceOp::lor ? 3 : 7) == 0 ? mixed % 2 : mixed % 90;
  const int range = op == ReduceOp::min || op == ReduceOp::max ? exact_limit(dtype) : exact_limit(dtype) / 5;
  const int value = mixed % (range + 1);
  return has_sign(dtype) && (mixed & 4) != 0 ? -value : value;
}

}  // namespace

Bytes reducible(DType dtype, ReduceOp op, std::size_t count, int rank) {
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i)
    store_element(dtype, &bytes[i * size_of(dtype)], value_at(dtype, op, i, rank));
  return bytes;
}

Bytes largest_values(DType dtype, std::size_t count) {
  const double value = kernels::reference::largest_of(dtype);
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const at = &bytes[i * size_of(dtype)];
    if (dtype == DType::float64) {
      store(at, value);
    } else if (dtype == DType::float32) {
      store(at, static_cast<float>(value));
    } else {
      const std::uint32_t bits =
          kernels::reference::encode(kernels::reference::format_of(dtype), static_cast<float>(value));
      std::memcpy(at, &bits, size_of(dtype));
    }
  }
  return bytes;
}

double least(DType dtype, const Bytes& array) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < array.size(); i += size_of(dtype)) {
    double value = 0;
    float narrow = 0;
    std::uint32_t bits = 0;
    if (dtype == DType::float64) {
      std::memcpy(&value, &array[i], sizeof value);
    } else if (dtype == DType::float32) {
      std::memcpy(&narrow, &array[i], sizeof narrow);
      value = narrow;
    } else {
      std::memcpy(&bits, &array[i], size_of(dtype));
      value = kernels::reference::decode(kernels::reference::format_of(dtype), bits);
    }
    if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
    least = std::min(least, value);
  }
  return least;
}

Bytes any_bytes(std::size_t bytes, int rank, int salt) {
  Bytes result(bytes);
  std::uint64_t state = static_cast<std::uint64_t>(rank) * 1'000'003 + static_cast<std::uint64_t>(salt) + 1;
  for (std::byte& b : result) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
    b = static_cast<std::byte>(state >> 56U);
  }
  return result;
}

Bytes reduced(DType dtype, ReduceOp op, const std::vector<Bytes>& by_rank) {
  if (by_rank.size() == 1) return by_rank[0];  // a communicator of one rank copies
  std::vector<const void*> inputs;
  for (const Bytes& one : by_rank) inputs.push_back(one.data());
  Bytes out(by_rank.at(0).size());
  kernels::reference::reduce(dtype, op, inputs, out.data(), out.size() / size_of(dtype),
                             op == ReduceOp::avg ? static_cast<std::uint32_t>(by_rank.size()) : 1);
  return out;
}

Bytes part(const Bytes& all, std::size_t from, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& one : parts) all.insert(all.end(), one.begin(), one.end());
  return all;
}

std::string difference(std::span<const std::byte> expected, std::span<const std::byte> actual) {
  if (expected.size() != actual.size()) {
    return std::to_string(expected.size()) + " bytes expected, " + std::to_string(actual.size()) + " bytes found";
  }
  // Equal arrays are the usual case, and memcmp() is much faster than a loop that is compiled at -O0.
  if (expected.empty() || std::memcmp(expected.data(), actual.data(), expected.size()) == 0) return {};
  const auto at = std::mismatch(expected.begin(), expected.end(), actual.begin());
  return "byte " + std::to_string(at.first - expected.begin()) + " of " + std::to_string(expected.size()) + " is " +
         std::to_string(std::to_integer<int>(*at.second)) + " instead of " +
         std::to_string(std::to_integer<int>(*at.first));
}

}  // namespace tributary::test

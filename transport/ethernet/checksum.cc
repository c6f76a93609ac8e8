#include "transport/ethernet/checksum.h"

#include <cstring>

namespace tributary::transport::ethernet {
namespace {

template <class T>
T load(const std::byte* at) noexcept {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Sums the last bytes, which are less than a block.
PartialSum sum_of_rest(const std::byte* at, std::size_t bytes) noexcept {
  PartialSum sum = 0;
  for (; bytes >= 4; at += 4, bytes -= 4) sum += load<std::uint32_t>(at);
  if (bytes >= 2) {
    sum += load<std::uint16_t>(at);
    at += 2;
    bytes -= 2;
  }
  return bytes == 0 ? sum : sum + std::to_integer<PartialSum>(*at);
}

// Each word of 32 bits adds its two halves to a sum of 32 bits. The sum of 32 bits could overflow after this many
// blocks, so it is then added to a sum of 64 bits.
constexpr std::size_t kBlocksAtOnce = 32768;

/// Returns the sum of the whole blocks of `from`, and also copies them to `to` if kCopies. `Vector` is the group of
/// words that are added at a time. The compiler inlines this function into functions for processors with registers of
/// that size.
template <class Vector, bool kCopies>
[[gnu::always_inline]] inline PartialSum sum_of_blocks(std::byte* to, const std::byte* from,
                                                       std::size_t blocks) noexcept {
  PartialSum sum = 0;
  while (blocks > 0) {
    const std::size_t some = blocks < kBlocksAtOnce ? blocks : kBlocksAtOnce;
    Vector sums{};
    for (std::size_t i = 0; i < some; ++i, from += sizeof(Vector)) {
      Vector words;
      std::memcpy(&words, from, sizeof words);
      if constexpr (kCopies) {
        std::memcpy(to, &words, sizeof words);
        to += sizeof(Vector);
      }
      sums += (words & 0xFFFFU) + (words >> 16U);
    }
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof(std::uint32_t); ++i) sum += sums[i];
    blocks -= some;
  }
  return sum;
}

using Words16 [[gnu::vector_size(16)]] = std::uint32_t;
using Words32 [[gnu::vector_size(32)]] = std::uint32_t;
using Words64 [[gnu::vector_size(64)]] = std::uint32_t;

template <class Vector, bool kCopies>
[[gnu::always_inline]] inline PartialSum sum_of(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t blocks = bytes / sizeof(Vector);
  const std::size_t done = blocks * sizeof(Vector);
  const PartialSum sum = sum_of_blocks<Vector, kCopies>(to, from, blocks);
  if (bytes == done) return sum;
  if constexpr (kCopies) std::memcpy(to + done, from + done, bytes - done);
  return sum + sum_of_rest(from + done, bytes - done);
}

using Sum = PartialSum (*)(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
struct Ways {
  Sum sum, copy;
};

PartialSum sum_16(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words16, false>(to, from, bytes);
}
PartialSum copy_16(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words16, true>(to, from, bytes);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] PartialSum sum_32(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words32, false>(to, from, bytes);
}
[[gnu::target("avx2")]] PartialSum copy_32(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words32, true>(to, from, bytes);
}
[[gnu::target("avx512f")]] PartialSum sum_64(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words64, false>(to, from, bytes);
}
[[gnu::target("avx512f")]] PartialSum copy_64(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return sum_of<Words64, true>(to, from, bytes);
}
Ways best_ways() noexcept {
  if (__builtin_cpu_supports("avx512f") != 0) return {sum_64, copy_64};
  if (__builtin_cpu_supports("avx2") != 0) return {sum_32, copy_32};
  return {sum_16, copy_16};
}
#else
Ways best_ways() noexcept {
  return {sum_16, copy_16};
}
#endif

const Ways& ways() noexcept {
  static const Ways best = best_ways();
  return best;
}

}  // namespace

PartialSum partial_sum(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < sizeof(Words64)) return sum_of_rest(bytes.data(), bytes.size());
  return ways().sum(nullptr, bytes.data(), bytes.size());
}

PartialSum copy_and_sum(std::byte* to, std::span<const std::byte> from) noexcept {
  if (from.empty()) return 0;
  return ways().copy(to, from.data(), from.size());
}

PartialSum at_odd_place(PartialSum sum) noexcept {
  const auto folded = static_cast<std::uint16_t>(~finish(sum));
  return __builtin_bswap16(folded);
}

PartialSum pseudo_header_sum(const IpAddress& from, const IpAddress& to, std::uint8_t protocol,
                             std::uint32_t bytes) noexcept {
  const std::size_t begin = is_ipv4(from) ? 12 : 0;  // the bytes before an IPv4 address have the same sum for IPv6
  const auto address = [begin](const IpAddress& ip) {
    return partial_sum(std::as_bytes(std::span(ip)).subspan(begin));
  };
  return address(from) + address(to) + __builtin_bswap16(protocol) + __builtin_bswap32(bytes);
}

}  // namespace tributary::transport::ethernet

#include "transport/packet/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "transport/ethernet/checksum.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tributary::transport::packet {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

using Table = std::array<std::uint32_t, 256>;

/// Entry tables[k][b] is the part of the CRC that byte b adds when k more bytes follow it.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t i = 0; i < 256; ++i) {
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

std::uint64_t load(const std::byte* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint32_t by_tables(const std::byte* at, std::size_t bytes, std::uint32_t crc) noexcept {
  for (; bytes >= 8; at += 8, bytes -= 8) {
    const std::uint64_t word = load(at) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; bytes > 0; ++at, --bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xFF];
  return crc;
}

// Multiplies two CRCs as polynomials modulo kPolynomial; a CRC's highest bit is the coefficient of 1.
constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1U) {
    if ((a & kOne) != 0) product ^= b;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kPolynomial : 0);
  }
  return product;
}

constexpr std::uint32_t power_of_x(std::uint64_t exponent) noexcept {
  std::uint32_t power = kOne;
  for (std::uint32_t square = kOne >> 1U; exponent != 0; exponent >>= 1U, square = multiply(square, square)) {
    if ((exponent & 1U) != 0) power = multiply(power, square);
  }
  return power;
}

#if defined(__x86_64__) || defined(__aarch64__)
// The CRC instruction takes three cycles, and one can begin in each cycle, so three blocks side by side keep it busy. A
// table moves a block's CRC past the blocks that follow: a CRC is linear, so its value after n bytes of zeros is the
// sum of the table's values for its four bytes.
constexpr std::size_t kBlockBytes = 256;

constexpr std::array<Table, 4> make_shift(std::size_t zeros) {
  std::array<Table, 4> shift{};
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      std::uint32_t crc = 1U << (8 * k + bit);
      for (std::size_t i = 0; i < zeros; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
      shift[k][1U << bit] = crc;
    }
    for (std::uint32_t i = 1; i < 256; ++i) shift[k][i] = shift[k][i & (i - 1)] ^ shift[k][i & (~i + 1)];
  }
  return shift;
}
constexpr auto kShiftOne = make_shift(kBlockBytes);
constexpr auto kShiftTwo = make_shift(2 * kBlockBytes);

constexpr std::uint32_t shifted(const std::array<Table, 4>& shift, std::uint32_t crc) noexcept {
  return shift[0][crc & 0xFF] ^ shift[1][(crc >> 8) & 0xFF] ^ shift[2][(crc >> 16) & 0xFF] ^ shift[3][crc >> 24];
}

#if defined(__x86_64__)
#define TRIBUTARY_CRC_TARGET __attribute__((target("sse4.2")))
#define TRIBUTARY_CRC_8(crc, word) static_cast<std::uint32_t>(_mm_crc32_u64(crc, word))
#define TRIBUTARY_CRC_4(crc, word) _mm_crc32_u32(crc, word)
#define TRIBUTARY_CRC_1(crc, byte) _mm_crc32_u8(crc, byte)
bool has_instruction() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0;
}
#else
#define TRIBUTARY_CRC_TARGET __attribute__((target("+crc")))
#define TRIBUTARY_CRC_8(crc, word) __crc32cd(crc, word)
#define TRIBUTARY_CRC_4(crc, word) __crc32cw(crc, word)
#define TRIBUTARY_CRC_1(crc, byte) __crc32cb(crc, byte)
bool has_instruction() noexcept {
  return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#endif

TRIBUTARY_CRC_TARGET std::uint32_t by_instruction(const std::byte* at, std::size_t bytes, std::uint32_t crc) noexcept {
  for (; bytes >= 3 * kBlockBytes; at += 3 * kBlockBytes, bytes -= 3 * kBlockBytes) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t i = 0; i < kBlockBytes; i += 8) {
      crc = TRIBUTARY_CRC_8(crc, load(at + i));
      second = TRIBUTARY_CRC_8(second, load(at + kBlockBytes + i));
      third = TRIBUTARY_CRC_8(third, load(at + 2 * kBlockBytes + i));
    }
    crc = shifted(kShiftTwo, crc) ^ shifted(kShiftOne, second) ^ third;
  }
  for (; bytes >= 8; at += 8, bytes -= 8) crc = TRIBUTARY_CRC_8(crc, load(at));
  if (bytes >= 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = TRIBUTARY_CRC_4(crc, word);
    at += 4;
    bytes -= 4;
  }
  for (; bytes > 0; ++at, --bytes) crc = TRIBUTARY_CRC_1(crc, static_cast<std::uint8_t>(*at));
  return crc;
}

/// The loop is unrolled by hand: it reads seven words and half a word.
TRIBUTARY_CRC_TARGET std::uint32_t header_by_instruction(const std::byte* at) noexcept {
  std::uint32_t crc = 0xFFFFFFFFU;
#pragma GCC unroll 8
  for (std::size_t i = 0; i + 8 <= kCrc32cHeaderBytes; i += 8) crc = TRIBUTARY_CRC_8(crc, load(at + i));
  std::uint32_t last = 0;
  std::memcpy(&last, at + kCrc32cHeaderBytes - sizeof last, sizeof last);
  return ~TRIBUTARY_CRC_4(crc, last);
}

#if defined(__x86_64__)
// Long inputs, 256 bytes at a time: 16 remainders of 128 bits side by side. To move a remainder by D bits, the code
// multiplies its two halves by x^(D+32) and x^(D-32). The product has at most 128 bits, and the same remainder. (Gopal
// et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, Intel 2009.)
constexpr std::size_t kFoldBytesMin = 256;
constexpr long long fold_factor(std::uint64_t bits) noexcept {
  return std::bit_cast<long long>(std::uint64_t{power_of_x(bits)} << 1U);
}
#define TRIBUTARY_FOLD_TARGET [[gnu::target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")]]

template <int kBits>
TRIBUTARY_FOLD_TARGET inline __m512i fold(__m512i ahead, __m512i here) noexcept {
  const __m512i factors = _mm512_set_epi64(fold_factor(kBits - 32), fold_factor(kBits + 32), fold_factor(kBits - 32),
                                           fold_factor(kBits + 32), fold_factor(kBits - 32), fold_factor(kBits + 32),
                                           fold_factor(kBits - 32), fold_factor(kBits + 32));
  const __m512i low = _mm512_clmulepi64_epi128(ahead, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(ahead, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, here, 0x96);  // the exclusive or of the three values
}

TRIBUTARY_FOLD_TARGET inline __m128i fold(__m128i ahead, __m128i here) noexcept {
  const __m128i factors = _mm_set_epi64x(fold_factor(128 - 32), fold_factor(128 + 32));
  const __m128i low = _mm_clmulepi64_si128(ahead, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(ahead, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), here);
}

TRIBUTARY_FOLD_TARGET inline __m512i wide(const std::byte* at) noexcept {
  return _mm512_loadu_si512(at);
}

/// Reads blocks of 64 bytes. With kSums it also adds them up for UDP's checksum.
template <bool kSums>
struct Blocks {
  using Words [[gnu::vector_size(64)]] = std::uint32_t;
  Words low{};  // 32-bit sums of 16-bit words, enough for some 60000 blocks
  Words high{};
  TRIBUTARY_FOLD_TARGET [[gnu::always_inline]] __m512i read(const std::byte* at) noexcept {
    const __m512i block = wide(at);
    if constexpr (kSums) {
      const auto words = reinterpret_cast<Words>(block);
      low += words & 0xFFFFU;
      high += words >> 16U;
    }
    return block;
  }
  TRIBUTARY_FOLD_TARGET [[gnu::always_inline]] std::uint64_t sum() const noexcept {
    std::uint64_t all = 0;
    if constexpr (kSums) {
      for (std::size_t i = 0; i < sizeof(Words) / sizeof(std::uint32_t); ++i) all += std::uint64_t{low[i]} + high[i];
    }
    return all;
  }
};

template <bool kSums>
TRIBUTARY_FOLD_TARGET std::uint32_t by_folding_of(const std::byte* at, std::size_t bytes, std::uint32_t crc,
                                                  std::uint64_t& sum) noexcept {
  Blocks<kSums> blocks;
  __m512i a = _mm512_xor_si512(blocks.read(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = blocks.read(at + 64);
  __m512i c = blocks.read(at + 128);
  __m512i d = blocks.read(at + 192);
  for (at += 256, bytes -= 256; bytes >= 256; at += 256, bytes -= 256) {
    a = fold<2048>(a, blocks.read(at));
    b = fold<2048>(b, blocks.read(at + 64));
    c = fold<2048>(c, blocks.read(at + 128));
    d = fold<2048>(d, blocks.read(at + 192));
  }
  d = fold<512>(fold<512>(fold<512>(a, b), c), d);
  for (; bytes >= 64; at += 64, bytes -= 64) d = fold<512>(d, blocks.read(at));
  sum += blocks.sum();
  alignas(64) std::byte quarters[64];
  std::memcpy(quarters, &d, sizeof d);
  const auto quarter = [&quarters](std::size_t i) { return reinterpret_cast<const __m128i*>(quarters + 16 * i); };
  __m128i rest = _mm_load_si128(quarter(0));
  for (std::size_t i = 1; i < 4; ++i) rest = fold(rest, _mm_load_si128(quarter(i)));
  const auto low = static_cast<std::uint64_t>(_mm_extract_epi64(rest, 0));
  const auto high = static_cast<std::uint64_t>(_mm_extract_epi64(rest, 1));
  // Clears the upper parts of registers. Otherwise the code that follows, which uses only the lower 128 bits, would
  // wait for them. The compiler omits this instruction before a call at a function's end.
  _mm256_zeroupper();
  if (kSums && bytes > 0) sum += ethernet::partial_sum({at, bytes});
  return by_instruction(at, bytes, TRIBUTARY_CRC_8(TRIBUTARY_CRC_8(0, low), high));
}

std::uint32_t by_folding(const std::byte* at, std::size_t bytes, std::uint32_t crc) noexcept {
  if (bytes < kFoldBytesMin) return by_instruction(at, bytes, crc);
  std::uint64_t none = 0;
  return by_folding_of<false>(at, bytes, crc, none);
}

constexpr std::size_t kSummedTogetherMax = 1U << 20U;
std::uint32_t by_folding_and_sum(const std::byte* at, std::size_t bytes, std::uint32_t crc,
                                 std::uint64_t& sum) noexcept {
  if (bytes >= kFoldBytesMin && bytes <= kSummedTogetherMax) return by_folding_of<true>(at, bytes, crc, sum);
  sum += ethernet::partial_sum({at, bytes});
  return by_folding(at, bytes, crc);
}

bool has_folding() noexcept {
  return has_instruction() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0;
}

// The product of two polynomials has at most 63 bits. The instruction takes it for a message of 64 bits, and so
// multiplies it by x^33. To make up for this, the power is smaller by x^33.
constexpr std::uint64_t kDivided = 33;
[[gnu::target("sse4.2,pclmul")]] std::uint32_t times(std::uint32_t crc, std::uint32_t power) noexcept {
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(crc), _mm_cvtsi64_si128(static_cast<long long>(power)), 0);
  return TRIBUTARY_CRC_8(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}
bool multiplies() noexcept {
  return has_instruction() && __builtin_cpu_supports("pclmul") != 0;
}
#undef TRIBUTARY_FOLD_TARGET
#else
bool has_folding() noexcept {
  return false;
}
constexpr auto by_folding = by_instruction;
std::uint32_t by_folding_and_sum(const std::byte* at, std::size_t bytes, std::uint32_t crc,
                                 std::uint64_t& sum) noexcept {
  sum += ethernet::partial_sum({at, bytes});
  return by_instruction(at, bytes, crc);
}
bool multiplies() noexcept {
  return false;
}
constexpr std::uint64_t kDivided = 0;
constexpr auto times = multiply;
#endif
#undef TRIBUTARY_CRC_TARGET
#undef TRIBUTARY_CRC_8
#undef TRIBUTARY_CRC_4
#undef TRIBUTARY_CRC_1
#else
bool has_instruction() noexcept {
  return false;
}
constexpr auto by_instruction = by_tables;
std::uint32_t header_by_instruction(const std::byte* at) noexcept {
  return ~by_tables(at, kCrc32cHeaderBytes, 0xFFFFFFFFU);
}
bool has_folding() noexcept {
  return false;
}
constexpr auto by_folding = by_tables;
std::uint32_t by_folding_and_sum(const std::byte* at, std::size_t bytes, std::uint32_t crc,
                                 std::uint64_t& sum) noexcept {
  sum += ethernet::partial_sum({at, bytes});
  return by_tables(at, bytes, crc);
}
bool multiplies() noexcept {
  return false;
}
constexpr std::uint64_t kDivided = 0;
constexpr auto times = multiply;
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const auto way = has_folding() ? by_folding : has_instruction() ? by_instruction : by_tables;
  return ~way(bytes.data(), bytes.size(), ~before);
}

std::uint32_t crc32c_of_header(const std::byte* header) noexcept {
  static const bool has = has_instruction();
  return has ? header_by_instruction(header) : ~by_tables(header, kCrc32cHeaderBytes, 0xFFFFFFFFU);
}

std::uint32_t crc32c_and_sum(std::span<const std::byte> bytes, std::uint32_t before, std::uint64_t& sum) noexcept {
  static const bool together = has_folding();
  if (together) return ~by_folding_and_sum(bytes.data(), bytes.size(), ~before, sum);
  sum += ethernet::partial_sum(bytes);
  return crc32c(bytes, before);
}

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ~by_tables(bytes.data(), bytes.size(), ~before);
}

std::uint32_t crc32c_instruction(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const auto way = has_instruction() ? by_instruction : by_tables;
  return ~way(bytes.data(), bytes.size(), ~before);
}

// The rule is crc(AB) = crc(A) x^(8|B|) + crc(B), because the one bits at the beginning and the end of a CRC cancel.
Crc32cSuffix Crc32cSuffix::of(std::span<const std::byte> first, std::span<const std::byte> second) noexcept {
  struct Known {
    std::size_t bytes = 0;
    std::uint32_t power = kOne;
  };
  static thread_local std::array<Known, 16> all_known;  // a cache, as payloads have few different
                                                        // lengths
  const std::size_t bytes = first.size() + second.size();
  Known& known = all_known[bytes / 64 % all_known.size()];
  if (known.bytes != bytes) {
    const std::uint64_t exponent = 8 * std::uint64_t{bytes};
    const std::uint64_t left_out = multiplies() && exponent >= kDivided ? kDivided : 0;
    known = {bytes, power_of_x(exponent - left_out)};
  }
  Crc32cSuffix suffix;
  suffix.alone_ = first.empty() ? crc32c(second) : crc32c(second, crc32c(first));
  suffix.power_ = known.power;
  suffix.divides_ = multiplies() && 8 * std::uint64_t{bytes} >= kDivided;
  return suffix;
}

std::uint32_t Crc32cSuffix::behind(std::uint32_t before) const noexcept {
  return (divides_ ? times(before, power_) : multiply(before, power_)) ^ alone_;
}

}  // namespace tributary::transport::packet

#include "packet/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tributary::transport::packet {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, reflected

using Table = std::array<std::uint32_t, 256>;

/// tables[k][b]: what byte b contributes when k more bytes follow it.
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

#if defined(__x86_64__) || defined(__aarch64__)
// The instruction answers after three cycles, and one can begin in each: three blocks side by side keep it busy. A
// block's result is carried past the blocks that follow it by a table: a CRC is linear, so what it becomes behind n
// bytes of zeros is the sum of what its four bytes become.
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
#define TRIBUTARY_CRC_1(crc, byte) _mm_crc32_u8(crc, byte)
bool has_instruction() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0;
}
#else
#define TRIBUTARY_CRC_TARGET __attribute__((target("+crc")))
#define TRIBUTARY_CRC_8(crc, word) __crc32cd(crc, word)
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
  for (; bytes > 0; ++at, --bytes) crc = TRIBUTARY_CRC_1(crc, static_cast<std::uint8_t>(*at));
  return crc;
}
#undef TRIBUTARY_CRC_TARGET
#undef TRIBUTARY_CRC_8
#undef TRIBUTARY_CRC_1
#else
bool has_instruction() noexcept {
  return false;
}
constexpr auto by_instruction = by_tables;
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const auto way = has_instruction() ? by_instruction : by_tables;
  return ~way(bytes.data(), bytes.size(), ~before);
}

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ~by_tables(bytes.data(), bytes.size(), ~before);
}

}  // namespace tributary::transport::packet

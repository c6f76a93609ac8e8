#pragma once
// CRC32C (Castagnoli; RFC 3720, appendix B.4), by the processor's instructions where it has them; the choice is made at
// the first use.
#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::transport::packet {

/// The CRC of `bytes` behind bytes whose CRC is `before`; 0 to begin.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The CRC of the first 60 bytes of a packet's header: all but the checksum itself.
inline constexpr std::size_t kCrc32cHeaderBytes = 60;
[[nodiscard]] std::uint32_t crc32c_of_header(const std::byte* header) noexcept;

/// As crc32c(); in the same pass the sum that UDP's checksum is made of (ethernet/checksum.h) is added to `sum`.
[[nodiscard]] std::uint32_t crc32c_and_sum(std::span<const std::byte> bytes, std::uint32_t before,
                                           std::uint64_t& sum) noexcept;

/// As crc32c(), without any special instruction.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// As crc32c(), by the instruction for CRC32C only. crc32c() uses it for short inputs, and for long ones on processors
/// without wide carry-less multiplication.
[[nodiscard]] std::uint32_t crc32c_instruction(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Bytes that stand behind several different beginnings. Their part of the CRC is computed once for all of these.
class Crc32cSuffix {
 public:
  Crc32cSuffix() = default;
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> bytes) noexcept { return of({}, bytes); }
  /// Makes the suffix of bytes that lie in two parts.
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> first, std::span<const std::byte> second) noexcept;
  /// The CRC of bytes whose CRC is `before` with this suffix behind them.
  [[nodiscard]] std::uint32_t behind(std::uint32_t before) const noexcept;

 private:
  std::uint32_t alone_ = 0;
  std::uint32_t power_ = 0x80000000;  // power of x by which the CRC before this suffix is
                                      // multiplied
  bool divides_ = false;              // the processor's instruction multiplies
};

}  // namespace tributary::transport::packet

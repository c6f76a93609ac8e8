#pragma once
// CRC32C (Castagnoli; RFC 3720, appendix B.4), by the processor's instructions where it has them; the first call makes
// the choice.
#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::transport::packet {

/// The CRC of bytes whose CRC is `before`, followed by `bytes`; `before` is 0 at the beginning.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The CRC of the first 60 bytes of a packet's header, which are all bytes except the checksum.
inline constexpr std::size_t kCrc32cHeaderBytes = 60;
[[nodiscard]] std::uint32_t crc32c_of_header(const std::byte* header) noexcept;

/// Computes crc32c(), and in the same pass adds the partial sum for UDP's checksum (ethernet/checksum.h) to `sum`.
[[nodiscard]] std::uint32_t crc32c_and_sum(std::span<const std::byte> bytes, std::uint32_t before,
                                           std::uint64_t& sum) noexcept;

/// Computes the same as crc32c(), without any special instruction.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Computes the same as crc32c(), by the instruction for CRC32C only. crc32c() uses it for short inputs, and on
/// processors without wide carry-less multiplication for long inputs, too.
[[nodiscard]] std::uint32_t crc32c_instruction(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Bytes that follow several different beginnings. Their part of the CRC is computed once for all beginnings.
class Crc32cSuffix {
 public:
  Crc32cSuffix() = default;
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> bytes) noexcept { return of({}, bytes); }
  /// Makes the suffix of bytes that lie in two parts.
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> first, std::span<const std::byte> second) noexcept;
  /// The CRC of bytes whose CRC is `before`, followed by this suffix.
  [[nodiscard]] std::uint32_t behind(std::uint32_t before) const noexcept;

 private:
  std::uint32_t alone_ = 0;
  std::uint32_t power_ = 0x80000000;  // power of x by which the CRC before this suffix is
                                      // multiplied
  bool divides_ = false;              // true: a processor's instruction multiplies
};

}  // namespace tributary::transport::packet

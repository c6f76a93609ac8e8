#pragma once
// CRC32C (Castagnoli; RFC 3720, appendix B.4): by the processor's instructions where it has some, chosen at the first
// use.
#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::transport::packet {

/// The CRC of `bytes`, which follow those that `before` was computed of; 0 to begin.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The CRC of the first 60 bytes of a packet's header: all but the checksum itself.
inline constexpr std::size_t kCrc32cHeaderBytes = 60;
[[nodiscard]] std::uint32_t crc32c_of_header(const std::byte* header) noexcept;

/// The same, and in the same pass the sum that UDP's checksum is made of (ethernet/checksum.h), which is added to
/// `sum`.
[[nodiscard]] std::uint32_t crc32c_and_sum(std::span<const std::byte> bytes, std::uint32_t before,
                                           std::uint64_t& sum) noexcept;

/// The same without any special instruction.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The same by the instruction for CRC32C alone, which crc32c() uses for short bytes, and for long ones where the
/// processor has no wide multiplications without carry.
[[nodiscard]] std::uint32_t crc32c_instruction(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Bytes that stand behind different others: what they add is found once, however many those are.
class Crc32cSuffix {
 public:
  Crc32cSuffix() = default;
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> bytes) noexcept { return of({}, bytes); }
  /// The suffix of bytes in two pieces.
  [[nodiscard]] static Crc32cSuffix of(std::span<const std::byte> first, std::span<const std::byte> second) noexcept;
  /// The CRC of bytes whose CRC is `before`, and these behind them.
  [[nodiscard]] std::uint32_t behind(std::uint32_t before) const noexcept;

 private:
  std::uint32_t alone_ = 0;
  std::uint32_t power_ = 0x80000000;  // of x, modulo the polynomial: a CRC is multiplied by it when these follow
  bool divides_ = false;              // by the processor's multiplication
};

}  // namespace tributary::transport::packet

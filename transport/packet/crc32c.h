#pragma once
// CRC32C (Castagnoli; RFC 3720, appendix B.4): by the processor's instruction where it has one, chosen at the first
// use.
#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::transport::packet {

/// Of `bytes`, which follow those that `before` was computed of; 0 to begin.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The same without any special instruction.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace tributary::transport::packet

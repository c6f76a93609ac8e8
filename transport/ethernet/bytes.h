#pragma once
// Numbers in network byte order at any place in a frame.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tributary::transport::ethernet {

static_assert(std::endian::native == std::endian::little, "written for little-endian processors");

[[nodiscard]] inline std::uint8_t load8(const std::byte* at) noexcept {
  return std::to_integer<std::uint8_t>(*at);
}
[[nodiscard]] inline std::uint16_t load16(const std::byte* at) noexcept {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap16(value);
}
[[nodiscard]] inline std::uint32_t load32(const std::byte* at) noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap32(value);
}
inline void store8(std::byte* at, std::uint8_t value) noexcept {
  *at = static_cast<std::byte>(value);
}
inline void store16(std::byte* at, std::uint16_t value) noexcept {
  value = __builtin_bswap16(value);
  std::memcpy(at, &value, sizeof value);
}
inline void store32(std::byte* at, std::uint32_t value) noexcept {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, sizeof value);
}
template <std::size_t N>
[[nodiscard]] std::array<std::uint8_t, N> load_array(const std::byte* at) noexcept {
  std::array<std::uint8_t, N> value;
  std::memcpy(value.data(), at, N);
  return value;
}
template <std::size_t N>
void store_array(std::byte* at, const std::array<std::uint8_t, N>& value) noexcept {
  std::memcpy(at, value.data(), N);
}

}  // namespace tributary::transport::ethernet

#pragma once
// The entry that a payload has in tables that know payloads by their addresses. Results lie at equal distances, which
// one multiplication may map to very few entries: 144 lines, for eight children and 1 KiB, times the golden ratio is
// almost a whole number. So the bits are mixed twice, as in murmur3's last step.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::packet {

inline constexpr unsigned kPayloadPlaceBits = 8;
inline constexpr std::size_t kPayloadPlaces = 1U << kPayloadPlaceBits;

[[nodiscard]] inline std::size_t payload_place(const std::byte* payload) noexcept {
  std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(payload) >> 6U;
  mixed *= 0xFF51AFD7ED558CCDULL;
  mixed ^= mixed >> 33U;
  mixed *= 0xC4CEB9FE1A85EC53ULL;
  return static_cast<std::size_t>(mixed >> (64U - kPayloadPlaceBits));
}

}  // namespace tributary::transport::packet

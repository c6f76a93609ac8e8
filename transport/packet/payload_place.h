#pragma once
// Hashes a payload's address to its entry in tables that find payloads by address. Results lie at equal distances in
// memory, and a hash of one multiplication may map them to very few entries: with eight children and 1 KiB the distance
// is 144 cache lines, and 144 times the golden ratio is almost a whole number. So the hash mixes the bits twice, as
// murmur3's last step does.
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

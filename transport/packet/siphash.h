#pragma once
// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): a short keyed hash that cannot be foretold without the key.
// Cookies and connection ids are made with it.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tributary::transport::packet {

using SipKey = std::array<std::uint64_t, 2>;

[[nodiscard]] inline std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes) noexcept {
  std::uint64_t v0 = key[0] ^ 0x736F6D6570736575ULL;
  std::uint64_t v1 = key[1] ^ 0x646F72616E646F6DULL;
  std::uint64_t v2 = key[0] ^ 0x6C7967656E657261ULL;
  std::uint64_t v3 = key[1] ^ 0x7465646279746573ULL;
  const auto rounds = [&](int count) {
    while (count-- > 0) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto mix = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const std::size_t whole = bytes.size() & ~std::size_t{7};
  for (std::size_t i = 0; i < whole; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    mix(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  if (bytes.size() > whole) std::memcpy(&last, bytes.data() + whole, bytes.size() - whole);
  mix(last);
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// Numbers that no other process can guess, derived from one secret.
class IdSource {
 public:
  /// `seed` 0: the system gives a random secret; otherwise the numbers depend only on the seed, for tests.
  explicit IdSource(std::uint64_t seed);
  [[nodiscard]] std::uint64_t next() noexcept { return hash(std::as_bytes(std::span(&(++count_), 1))); }
  [[nodiscard]] std::uint64_t hash(std::span<const std::byte> bytes) const noexcept { return siphash(key_, bytes); }

 private:
  SipKey key_{};
  std::uint64_t count_ = 0;
};

}  // namespace tributary::transport::packet

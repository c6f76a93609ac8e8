#pragma once
// A small seeded generator (xoshiro256**, Blackman and Vigna, ACM TOMS 47 (2021), article 36): it gives the same
// numbers on every machine and with every library. std::uniform_int_distribution does not promise this.
#include <array>
#include <bit>
#include <cstdint>

namespace tributary::transport {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = split_mix(seed);
  }

  std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Returns a number in [0, bound), or 0 if bound is 0. A multiplication folds the random number into the range; its
  /// bias is below 2^-32 for the small bounds used here.
  std::uint64_t below(std::uint64_t bound) noexcept {
    if (bound >> 32 != 0) return next() % bound;
    return ((next() >> 32) * bound) >> 32;
  }
  bool chance(std::uint32_t percent) noexcept { return percent != 0 && below(100) < percent; }

 private:
  static std::uint64_t split_mix(std::uint64_t& seed) noexcept {
    seed += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace tributary::transport

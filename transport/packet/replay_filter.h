#pragma once
// Remembers which of the latest kNumbers packet numbers were accepted. A sealed packet is accepted once, and a packet
// with an older number than these is never accepted. RFC 4303, section 3.4.3, describes this; kNumbers is larger here,
// because packets of fast links overtake each other by hundreds.
#include <array>
#include <cstdint>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

class ReplayFilter {
 public:
  static constexpr std::uint64_t kNumbers = 1024;

  [[nodiscard]] bool fresh(std::uint64_t number) const noexcept {
    if (number >= next_) return true;
    if (next_ - number > kNumbers) return false;
    return (words_[word(number)] >> (number % 64) & 1) == 0;
  }
  /// Notes a fresh number whose packet was authentic.
  void note(std::uint64_t number) noexcept {
    TRIBUTARY_ASSERT(fresh(number), "packet {} is taken twice, before {}", number, next_);
    if (number >= next_) {
      const std::uint64_t first = number - next_ >= kNumbers ? number - kNumbers + 1 : next_;
      for (std::uint64_t n = first; n <= number; ++n) words_[word(n)] &= ~(std::uint64_t{1} << (n % 64));
      next_ = number + 1;
    }
    words_[word(number)] |= std::uint64_t{1} << (number % 64);
  }

 private:
  static constexpr std::size_t word(std::uint64_t number) noexcept { return number / 64 % (kNumbers / 64); }
  std::array<std::uint64_t, kNumbers / 64> words_{};
  std::uint64_t next_ = 0;  // this number and later ones were not accepted yet
};

}  // namespace tributary::transport::packet

#pragma once
// Sizes by which a call is cut and its results are written.
#include <cstddef>
#include <cstdint>

namespace tributary::client::local {

/// Results of calls from this size on go past the caches, unless they lie where an input was just read: they would be
/// gone from the cache before the caller reads them. On a Sapphire Rapids with 2 MiB of second cache and 4 ranks on 2
/// cores, an all_reduce of 16 MiB takes a fifth less, one of 4 MiB the same.
inline constexpr std::size_t kStreamBytesMin = std::size_t{6} << 20;

[[nodiscard]] constexpr std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) noexcept {
  return (a + b - 1) / b;
}

}  // namespace tributary::client::local

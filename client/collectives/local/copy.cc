#include "client/collectives/local/copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace tributary::client::local {

void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)

// Every x86-64 processor has these stores of 16 bytes. It combines four of them into one cache line, so wider stores
// are not faster.
void copy_streamed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < head + kLine) return copy_plain(to, from, bytes);
  copy_plain(to, from, head);
  std::size_t offset = head;
  for (; bytes - offset >= kLine; offset += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + offset);
    auto* out = reinterpret_cast<__m128i*>(to + offset);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  copy_plain(to + offset, from + offset, bytes - offset);
  _mm_sfence();
}

#else

void copy_streamed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  copy_plain(to, from, bytes);
}

#endif

}  // namespace tributary::client::local

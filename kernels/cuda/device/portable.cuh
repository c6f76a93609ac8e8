#pragma once
// The functions of the device that the kernels' bodies need, also in a plain form for the host: g++ compiles the same
// bodies for unit tests, which check their arithmetic and their indexing without a GPU.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#define TRIBUTARY_DEVICE __host__ __device__ __forceinline__
#define TRIBUTARY_UNROLL _Pragma("unroll")
#else
#define TRIBUTARY_DEVICE inline
#define TRIBUTARY_UNROLL
#endif

namespace tributary::kernels::cuda {

/// The index of this thread, and the number of all threads, in the whole grid.
struct Lane {
  std::uint64_t index;
  std::uint64_t count;
};

template <class To, class From>
TRIBUTARY_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

/// Loads or stores kBytes bytes at an address that is a multiple of kBytes; up to 16 bytes move at once. A chunk is
/// made of words, because nvcc puts the elements of an array of bytes together again byte by byte.
template <std::size_t kBytes>
struct alignas(kBytes) Chunk {
  using Word = std::conditional_t<kBytes % 4 == 0, std::uint32_t, std::uint8_t>;
  Word words[kBytes / sizeof(Word)];
};

// The kernels read and write all data once, so these loads and stores mark their lines as the first to leave the cache.
// They avoid the read-only path, because a kernel in place also writes the array.
template <std::size_t kBytes>
TRIBUTARY_DEVICE Chunk<kBytes> load_chunk(const void* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (kBytes == 16) return bits_as<Chunk<16>>(__ldcs(static_cast<const uint4*>(from)));
  if constexpr (kBytes == 8) return bits_as<Chunk<8>>(__ldcs(static_cast<const uint2*>(from)));
  if constexpr (kBytes == 4) return bits_as<Chunk<4>>(__ldcs(static_cast<const unsigned*>(from)));
#endif
  Chunk<kBytes> chunk;
  memcpy(&chunk, from, kBytes);
  return chunk;
}

template <std::size_t kBytes>
TRIBUTARY_DEVICE void store_chunk(void* to, Chunk<kBytes> chunk) {
#if defined(__CUDA_ARCH__)
  if constexpr (kBytes == 16) return __stcs(static_cast<uint4*>(to), bits_as<uint4>(chunk));
  if constexpr (kBytes == 8) return __stcs(static_cast<uint2*>(to), bits_as<uint2>(chunk));
  if constexpr (kBytes == 4) return __stcs(static_cast<unsigned*>(to), bits_as<unsigned>(chunk));
#endif
  memcpy(to, &chunk, kBytes);
}

template <class T>
TRIBUTARY_DEVICE T load_element(const void* array, std::uint64_t index) {
  return static_cast<const T*>(array)[index];
}
template <class T>
TRIBUTARY_DEVICE void store_element(void* array, std::uint64_t index, T value) {
  static_cast<T*>(array)[index] = value;
}

/// Returns byte kByte of each word; the byte of `a` is the lowest one.
template <std::uint32_t kByte>
TRIBUTARY_DEVICE std::uint32_t bytes_of_words(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
#if defined(__CUDA_ARCH__)
  constexpr std::uint32_t kOfTwo = kByte | (kByte + 4) << 4;
  return __byte_perm(__byte_perm(a, b, kOfTwo), __byte_perm(c, d, kOfTwo), 0x5410);
#else
  const auto byte = [](std::uint32_t word) { return (word >> (8 * kByte)) & 0xFF; };
  return byte(a) | byte(b) << 8 | byte(c) << 16 | byte(d) << 24;
#endif
}

TRIBUTARY_DEVICE std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

TRIBUTARY_DEVICE std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#endif
}

}  // namespace tributary::kernels::cuda

#include "bench/kernels/memory_probe.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tributary::bench {
namespace {

#if defined(__AVX512F__)
using Block = __m512i;
Block load(const std::byte* from) {
  return _mm512_load_si512(from);
}
Block merge(Block a, Block b) {
  return _mm512_or_si512(a, b);
}
void store(std::byte* to, Block block) {
  _mm512_store_si512(to, block);
}
void stream(std::byte* to, Block block) {
  _mm512_stream_si512(reinterpret_cast<Block*>(to), block);
}
void fence() {
  _mm_sfence();
}
#elif defined(__AVX2__)
using Block = __m256i;
Block load(const std::byte* from) {
  return _mm256_load_si256(reinterpret_cast<const Block*>(from));
}
Block merge(Block a, Block b) {
  return _mm256_or_si256(a, b);
}
void store(std::byte* to, Block block) {
  _mm256_store_si256(reinterpret_cast<Block*>(to), block);
}
void stream(std::byte* to, Block block) {
  _mm256_stream_si256(reinterpret_cast<Block*>(to), block);
}
void fence() {
  _mm_sfence();
}
#else
using Block = std::uint8_t __attribute__((vector_size(16)));
Block load(const std::byte* from) {
  return *reinterpret_cast<const Block*>(from);
}
Block merge(Block a, Block b) {
  return a | b;
}
void store(std::byte* to, Block block) {
  *reinterpret_cast<Block*>(to) = block;
}
void stream(std::byte* to, Block block) {
  store(to, block);
}
void fence() {}
#endif

/// Reads kBlocks blocks of each input in turn, then writes equally many blocks of the result.
template <std::size_t kBlocks, bool kStream>
void walk(std::span<const std::byte* const> inputs, std::byte* out, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes; offset += kBlocks * sizeof(Block)) {
    Block blocks[kBlocks];
    for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = load(inputs[0] + offset + i * sizeof(Block));
    for (const std::byte* input : inputs.subspan(1)) {
      for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = merge(blocks[i], load(input + offset + i * sizeof(Block)));
    }
    for (std::size_t i = 0; i < kBlocks; ++i) {
      if constexpr (kStream)
        stream(out + offset + i * sizeof(Block), blocks[i]);
      else
        store(out + offset + i * sizeof(Block), blocks[i]);
    }
  }
  fence();
}

constexpr MemoryProbe kProbes[] = {
    {"1 block, streamed", walk<1, true>},  {"2 blocks, streamed", walk<2, true>}, {"4 blocks, streamed", walk<4, true>},
    {"8 blocks, streamed", walk<8, true>}, {"2 blocks, stored", walk<2, false>},  {"4 blocks, stored", walk<4, false>},
};

// ---- Conversions.

constexpr std::size_t kGroupBlockBytes = 64;
constexpr std::size_t kPerBlock = kGroupBlockBytes / sizeof(Block);

/// Reads kTimes groups before it writes any.
template <std::size_t kRead, std::size_t kWritten, bool kReadsOut, std::size_t kTimes, bool kStream>
void walk_converting(const std::byte* in, std::byte* out, std::size_t groups) {
  constexpr std::size_t kIn = kRead * kPerBlock * kTimes;
  constexpr std::size_t kOut = kWritten * kPerBlock * kTimes;
  for (std::size_t group = 0; group < groups; group += kTimes) {
    Block blocks[kOut];
    for (std::size_t i = 0; i < std::max(kIn, kOut); ++i) {
      const Block loaded = load(in + i % kIn * sizeof(Block));
      blocks[i % kOut] = i < kOut ? loaded : merge(blocks[i % kOut], loaded);
    }
    if constexpr (kReadsOut) {
      for (std::size_t i = 0; i < kOut; ++i) blocks[i] = merge(blocks[i], load(out + i * sizeof(Block)));
    }
    for (std::size_t i = 0; i < kOut; ++i) {
      if constexpr (kStream)
        stream(out + i * sizeof(Block), blocks[i]);
      else
        store(out + i * sizeof(Block), blocks[i]);
    }
    in += kIn * sizeof(Block);
    out += kOut * sizeof(Block);
  }
  fence();
}

template <std::size_t kRead, std::size_t kWritten, bool kReadsOut>
constexpr ConvertProbe kConvertProbes[] = {
    {"1 group, streamed", walk_converting<kRead, kWritten, kReadsOut, 1, true>},
    {"2 groups, streamed", walk_converting<kRead, kWritten, kReadsOut, 2, true>},
    {"1 group, stored", walk_converting<kRead, kWritten, kReadsOut, 1, false>},
    {"2 groups, stored", walk_converting<kRead, kWritten, kReadsOut, 2, false>},
};

}  // namespace

std::span<const MemoryProbe> memory_probes() {
  return kProbes;
}

std::span<const ConvertProbe> convert_probes(ConvertShape shape) {
  if (shape.read == 4 && shape.written == 1) return kConvertProbes<4, 1, false>;
  if (shape.read == 4 && shape.written == 2) return kConvertProbes<4, 2, false>;
  if (shape.read == 1 && shape.written == 4) {
    if (shape.reads_out) return kConvertProbes<1, 4, true>;
    return kConvertProbes<1, 4, false>;
  }
  if (shape.read == 2 && shape.written == 4) {
    if (shape.reads_out) return kConvertProbes<2, 4, true>;
    return kConvertProbes<2, 4, false>;
  }
  return {};
}

}  // namespace tributary::bench

#include "memory_probe.h"

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

/// kBlocks of each input in turn, then as many of the result.
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

}  // namespace

std::span<const MemoryProbe> memory_probes() {
  return kProbes;
}

}  // namespace tributary::bench

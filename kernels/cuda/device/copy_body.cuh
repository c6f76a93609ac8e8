#pragma once
// The work of one thread of a group in copies: of any bytes at any alignment, and of many tensors by a table.
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device/portable.cuh"

namespace tributary::kernels::cuda {

/// Copies whole chunks of kBytes, and the ends byte by byte. Source and destination are equal modulo kBytes.
template <std::size_t kBytes>
TRIBUTARY_DEVICE void copy_in_chunks(char* to, const char* from, std::uint64_t bytes, Lane lane) {
  const std::uint64_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kBytes;
  std::uint64_t head = misaligned == 0 ? 0 : kBytes - misaligned;
  if (head > bytes) head = bytes;
  const std::uint64_t chunks = (bytes - head) / kBytes;
  constexpr std::uint32_t kUnrolled = 4;
  std::uint64_t chunk = lane.index;
  for (; chunk + (kUnrolled - 1) * lane.count < chunks; chunk += kUnrolled * lane.count) {
    Chunk<kBytes> in_flight[kUnrolled];
    TRIBUTARY_UNROLL
    for (std::uint32_t u = 0; u < kUnrolled; ++u)
      in_flight[u] = load_chunk<kBytes>(from + head + (chunk + u * lane.count) * kBytes);
    TRIBUTARY_UNROLL
    for (std::uint32_t u = 0; u < kUnrolled; ++u)
      store_chunk(to + head + (chunk + u * lane.count) * kBytes, in_flight[u]);
  }
  for (; chunk < chunks; chunk += lane.count)
    store_chunk(to + head + chunk * kBytes, load_chunk<kBytes>(from + head + chunk * kBytes));
  for (std::uint64_t i = lane.index; i < head; i += lane.count) to[i] = from[i];
  for (std::uint64_t i = head + chunks * kBytes + lane.index; i < bytes; i += lane.count) to[i] = from[i];
}

TRIBUTARY_DEVICE void copy_body(char* to, const char* from, std::uint64_t bytes, Lane lane) {
  const std::uint64_t apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  if (apart % 16 == 0) return copy_in_chunks<16>(to, from, bytes, lane);
  if (apart % 8 == 0) return copy_in_chunks<8>(to, from, bytes, lane);
  if (apart % 4 == 0) return copy_in_chunks<4>(to, from, bytes, lane);
  copy_in_chunks<1>(to, from, bytes, lane);
}

/// Returns the last entry whose first chunk is not after `chunk`. An entry without bytes has the same first chunk as
/// the next entry, so it is never returned.
TRIBUTARY_DEVICE std::uint32_t entry_of_chunk(const PackArguments& arguments, std::uint64_t chunk) {
  std::uint32_t low = 0;
  std::uint32_t high = arguments.entries_count;  // the answer is in [low, high)
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (arguments.entries[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Copies one chunk with the lanes of one block.
TRIBUTARY_DEVICE void pack_chunk(const PackArguments& arguments, std::uint64_t chunk, Lane lane) {
  const PackEntry entry = arguments.entries[entry_of_chunk(arguments, chunk)];
  const std::uint64_t begin = (chunk - entry.first_chunk) * kChunkBytes;
  const std::uint64_t bytes = entry.bytes - begin < kChunkBytes ? entry.bytes - begin : kChunkBytes;
  char* const tensor = reinterpret_cast<char*>(entry.tensor) + begin;
  char* const packed = static_cast<char*>(arguments.packed) + entry.offset + begin;
  if (arguments.direction == PackDirection::pack)
    copy_body(packed, tensor, bytes, lane);
  else
    copy_body(tensor, packed, bytes, lane);
}

}  // namespace tributary::kernels::cuda

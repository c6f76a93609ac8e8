#pragma once
// The work of one thread of a grid in reduce().
#include "kernels/cuda/device/element.cuh"

namespace tributary::kernels::cuda {

/// Reduces kVectors vectors of 16 bytes of every input, at `first`, `first + apart`, ...: kVectors loads are under way
/// at once. It stores after all reads, so that the result may overlap an input. The vectors start `head_bytes` from the
/// start of every array.
template <class E, std::uint32_t kVectors>
TRIBUTARY_DEVICE void reduce_vectors(const ReduceArguments& arguments, std::uint64_t head_bytes, std::uint64_t first,
                                     std::uint64_t apart) {
  using Stored = typename E::Stored;
  constexpr std::uint32_t kElements = kVectorBytes / sizeof(Stored);
  struct alignas(kVectorBytes) Vector {
    Stored elements[kElements];
  };
  const auto address = [&](const void* array, std::uint32_t v) {
    return static_cast<const char*>(array) + head_bytes + (first + v * apart) * kVectorBytes;
  };

  typename E::Accumulator accumulators[kVectors][kElements];
  TRIBUTARY_UNROLL
  for (std::uint32_t v = 0; v < kVectors; ++v) {
    const auto vector = bits_as<Vector>(load_chunk<kVectorBytes>(address(arguments.inputs[0], v)));
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) accumulators[v][e] = E::load(vector.elements[e]);
  }
#if defined(__CUDACC__)
#pragma unroll 4
#endif
  for (std::uint32_t input = 1; input < arguments.inputs_count; ++input) {
    Vector vectors[kVectors];
    TRIBUTARY_UNROLL
    for (std::uint32_t v = 0; v < kVectors; ++v)
      vectors[v] = bits_as<Vector>(load_chunk<kVectorBytes>(address(arguments.inputs[input], v)));
    TRIBUTARY_UNROLL
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      TRIBUTARY_UNROLL
      for (std::uint32_t e = 0; e < kElements; ++e)
        accumulators[v][e] = E::combine(accumulators[v][e], E::load(vectors[v].elements[e]));
    }
  }
  TRIBUTARY_UNROLL
  for (std::uint32_t v = 0; v < kVectors; ++v) {
    Vector vector;
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) vector.elements[e] = E::store(accumulators[v][e], arguments);
    store_chunk(const_cast<char*>(address(arguments.out, v)), bits_as<Chunk<kVectorBytes>>(vector));
  }
}

template <class E>
TRIBUTARY_DEVICE void reduce_element(const ReduceArguments& arguments, std::uint64_t i) {
  using Stored = typename E::Stored;
  auto value = E::load(load_element<Stored>(arguments.inputs[0], i));
  for (std::uint32_t input = 1; input < arguments.inputs_count; ++input)
    value = E::combine(value, E::load(load_element<Stored>(arguments.inputs[input], i)));
  store_element<Stored>(arguments.out, i, E::store(value, arguments));
}

/// Neighbouring lanes take neighbouring vectors; then each lane moves on by the width of the grid.
template <DType kDType, ReduceOp kOp>
TRIBUTARY_DEVICE void reduce_body(const ReduceArguments& arguments, Lane lane) {
  using E = Element<kDType, kOp>;
  using V = VectorElement<kDType, kOp>;
  constexpr std::uint64_t kElements = kVectorBytes / sizeof(typename E::Stored);
  // With more vectors at once, the accumulators of bytes would not fit into the registers.
  constexpr std::uint64_t kAccumulatorBytes =
      kVectorBytes / sizeof(typename V::Stored) * sizeof(typename V::Accumulator);
  constexpr std::uint32_t kAtOnce = kAccumulatorBytes >= 64 ? 1 : 2;
  const std::uint64_t head_bytes = arguments.split.head * sizeof(typename E::Stored);
  std::uint64_t vector = lane.index;
  for (; vector + (kAtOnce - 1) * lane.count < arguments.split.vectors; vector += kAtOnce * lane.count) {
    reduce_vectors<V, kAtOnce>(arguments, head_bytes, vector, lane.count);
  }
  for (; vector < arguments.split.vectors; vector += lane.count) reduce_vectors<V, 1>(arguments, head_bytes, vector, 0);

  for (std::uint64_t i = lane.index; i < arguments.split.head; i += lane.count) reduce_element<E>(arguments, i);
  const std::uint64_t tail = arguments.split.head + arguments.split.vectors * kElements;
  for (std::uint64_t i = tail + lane.index; i < arguments.count; i += lane.count) reduce_element<E>(arguments, i);
}

}  // namespace tributary::kernels::cuda

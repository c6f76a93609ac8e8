#pragma once
// Tensors of every dtype whose reductions are exact in every order, so that tests can compare results bit by bit.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::test {

using Bytes = std::vector<std::byte>;

/// Returns `count` elements of `rank`, which differ between ranks and between elements as far as the dtype allows.
/// Sums, products, and the sums for averages are exact in any order for up to five ranks.
[[nodiscard]] Bytes reducible(DType dtype, ReduceOp op, std::size_t count, int rank);

/// largest_values() returns `count` times the largest value of a float type. least() returns the least element of an
/// array of floats, where NaN is below all other values.
[[nodiscard]] Bytes largest_values(DType dtype, std::size_t count);
[[nodiscard]] double least(DType dtype, const Bytes& array);

/// Returns arbitrary bytes, for calls that only move data.
[[nodiscard]] Bytes any_bytes(std::size_t bytes, int rank, int salt = 0);

/// Returns the reduction of all ranks' arrays, in rank order, by the scalar reference; an average is over all arrays.
[[nodiscard]] Bytes reduced(DType dtype, ReduceOp op, const std::vector<Bytes>& by_rank);

/// Returns bytes [from, from + count) of `all`.
[[nodiscard]] Bytes part(const Bytes& all, std::size_t from, std::size_t count);
[[nodiscard]] Bytes joined(const std::vector<Bytes>& parts);

/// Returns an empty text if the arrays are equal, else the first place where they differ.
[[nodiscard]] std::string difference(std::span<const std::byte> expected, std::span<const std::byte> actual);

}  // namespace tributary::test

#pragma once
// Tensors of every dtype whose reductions are exact, so that results can be compared bit by bit, whatever the order.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::test {

using Bytes = std::vector<std::byte>;

/// Returns `count` elements of `rank`, which differ from rank to rank and from element to element as far as the dtype
/// allows. Sums, averages' sums and products of up to five ranks are exact in any order.
[[nodiscard]] Bytes reducible(DType dtype, ReduceOp op, std::size_t count, int rank);

/// Return `count` times the largest value of a float type, and the least element of an array of floats; NaN is below
/// all.
[[nodiscard]] Bytes largest_values(DType dtype, std::size_t count);
[[nodiscard]] double least(DType dtype, const Bytes& array);

/// Returns arbitrary bytes, for data that are only moved.
[[nodiscard]] Bytes any_bytes(std::size_t bytes, int rank, int salt = 0);

/// Returns the reduction of all ranks' arrays, in rank order, by the scalar reference; an average is over all of them.
[[nodiscard]] Bytes reduced(DType dtype, ReduceOp op, const std::vector<Bytes>& by_rank);

/// Returns bytes [from, from + count) of `all`.
[[nodiscard]] Bytes part(const Bytes& all, std::size_t from, std::size_t count);
[[nodiscard]] Bytes joined(const std::vector<Bytes>& parts);

/// Returns an empty text if they are equal, else the first place where they differ.
[[nodiscard]] std::string difference(std::span<const std::byte> expected, std::span<const std::byte> actual);

}  // namespace tributary::test

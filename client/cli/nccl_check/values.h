#pragma once
// Tensors with a known exact reduction, in every type down to 8 bits: small whole numbers that depend on rank and
// place.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::cli::nccl_check {

namespace abi = nccl::abi;

inline constexpr int kRanksMax = 8;  // with more ranks, sums of 8-bit floats would not be exact

[[nodiscard]] std::size_t size_of(abi::DataType type);
[[nodiscard]] std::string name_of(abi::DataType type);
[[nodiscard]] std::string name_of(abi::RedOp op);

/// Writes the contribution of `rank`; another `seed` gives another tensor.
void fill(std::span<std::byte> to, abi::DataType type, abi::RedOp op, int rank, int ranks, unsigned seed);
/// Writes the result over all ranks. `first` is the index of its first element in the whole tensor.
void fill_result(std::span<std::byte> to, abi::DataType type, abi::RedOp op, int ranks, unsigned seed,
                 std::size_t first = 0);

}  // namespace tributary::cli::nccl_check

#pragma once
// A window onto the concatenation of equal pieces, one of each rank: finds the ranks whose bytes lie in it.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tributary::nccl {

struct Share {
  int rank = 0;
  std::size_t offset = 0;  // in the window
  std::size_t bytes = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

/// Returns the parts of [offset, offset + bytes) by rank, in order, none of them empty.
[[nodiscard]] inline std::vector<Share> shares_of_window(std::size_t bytes_per_rank, int ranks, std::size_t offset,
                                                         std::size_t bytes) {
  std::vector<Share> shares;
  if (bytes_per_rank == 0) return shares;
  const std::size_t end = std::min(offset + bytes, bytes_per_rank * static_cast<std::size_t>(ranks));
  for (std::size_t at = offset; at < end;) {
    const std::size_t rank = at / bytes_per_rank;
    const std::size_t next = std::min(end, (rank + 1) * bytes_per_rank);
    shares.push_back({static_cast<int>(rank), at - offset, next - at});
    at = next;
  }
  return shares;
}

}  // namespace tributary::nccl

#pragma once
// A window into the equal parts of all ranks, one part behind the other. Finds the ranks whose bytes lie in the window.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tributary::nccl {

struct Share {
  int rank = 0;
  std::size_t offset = 0;  // first byte of the share in the window
  std::size_t bytes = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

/// Returns the ranks' shares of the bytes [offset, offset + bytes), in the order of the ranks. No share is empty.
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

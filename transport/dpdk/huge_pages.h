#pragma once
// The kernel's huge pages, and advice where there are too few.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tributary::transport::dpdk {

struct HugePagePool {
  std::size_t page_bytes = 0;
  std::size_t free = 0;
  std::size_t total = 0;
};

/// Reads the kernel's list, from another folder in tests. Returns the largest pages first.
[[nodiscard]] std::vector<HugePagePool> read_huge_pages(const std::string& folder = "/sys/kernel/mm/hugepages");
[[nodiscard]] std::size_t free_bytes(const std::vector<HugePagePool>& pools) noexcept;
/// Returns whole sentences: the memory that is needed, the huge pages that exist, and the command that makes more.
[[nodiscard]] std::string missing_pages_text(const std::vector<HugePagePool>& pools, std::size_t needed_bytes);

}  // namespace tributary::transport::dpdk

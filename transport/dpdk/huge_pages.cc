#include "transport/dpdk/huge_pages.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace tributary::transport::dpdk {
namespace {

constexpr std::string_view kPrefix = "hugepages-";  // hugepages-2048kB
constexpr std::size_t kUsualPageBytes = 2048 * 1024;

std::size_t number_in(const std::filesystem::path& file) {
  std::size_t number = 0;
  std::ifstream(file) >> number;
  return number;
}

std::string kilobytes(std::size_t bytes) {
  return std::to_string(bytes / 1024) + "kB";
}

}  // namespace

std::vector<HugePagePool> read_huge_pages(const std::string& folder) {
  std::vector<HugePagePool> pools;
  std::error_code ignored;  // no such folder: a kernel without huge pages
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    std::size_t kilo = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), kilo);
    pools.push_back(
        {kilo * 1024, number_in(entry.path() / "free_hugepages"), number_in(entry.path() / "nr_hugepages")});
  }
  std::ranges::sort(pools, std::greater{}, &HugePagePool::page_bytes);
  return pools;
}

std::size_t free_bytes(const std::vector<HugePagePool>& pools) noexcept {
  std::size_t bytes = 0;
  for (const HugePagePool& pool : pools) bytes += pool.page_bytes * pool.free;
  return bytes;
}

std::string missing_pages_text(const std::vector<HugePagePool>& pools, std::size_t needed_bytes) {
  HugePagePool pool{.page_bytes = kUsualPageBytes};
  for (const HugePagePool& one : pools) {
    if (one.page_bytes <= kUsualPageBytes || pools.size() == 1) pool = one;
  }
  const std::size_t free = free_bytes(pools);
  const std::size_t lacking = needed_bytes > free ? needed_bytes - free : 0;
  const std::size_t pages = pool.total + (lacking + pool.page_bytes - 1) / pool.page_bytes;
  return "DPDK needs " + std::to_string(needed_bytes >> 20U) + " MiB in huge pages, and " +
         std::to_string(free >> 20U) + " MiB are free. As root: echo " + std::to_string(pages) +
         " > /sys/kernel/mm/hugepages/hugepages-" + kilobytes(pool.page_bytes) +
         "/nr_hugepages; or let it do without them, which is slower.";
}

}  // namespace tributary::transport::dpdk

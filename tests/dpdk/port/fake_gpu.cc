// Stands in for DPDK's rte_gpudev on a host with one GPU. The GPU's memory is a file in memory with two mappings: at
// the address that a device uses, and at another address for the processor.
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>

namespace {

struct Memory {
  int file = -1;
  std::size_t bytes = 0;
};
std::map<void*, Memory>& memories() {
  static std::map<void*, Memory> all;
  return all;
}

constexpr std::size_t kAligned = 65536;

void* map(int file, std::size_t bytes) {
  void* const room = ::mmap(nullptr, bytes + kAligned, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  const auto begin = (reinterpret_cast<std::uintptr_t>(room) + kAligned - 1) / kAligned * kAligned;
  void* const at =
      ::mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

extern "C" {

std::int16_t rte_gpu_find_next(std::int16_t dev_id, std::int16_t) {
  return dev_id <= 0 ? std::int16_t{0} : std::int16_t{-1};
}
int rte_gpu_info_get(std::int16_t, rte_gpu_info* info) {
  *info = {};
  info->name = "0000:65:00.0";
  info->page_size = kAligned;
  return 0;
}
void* rte_gpu_mem_alloc(std::int16_t, std::size_t size, unsigned) {
  const int file = ::memfd_create("gpu", MFD_CLOEXEC);
  void* const at = file >= 0 && ::ftruncate(file, static_cast<off_t>(size)) == 0 ? map(file, size) : nullptr;
  if (at != nullptr) memories()[at] = {file, size};
  return at;
}
void* rte_gpu_mem_cpu_map(std::int16_t, std::size_t size, void* ptr) {
  // The distance between the two mappings is different each time.
  static std::size_t apart = 0;
  (void)::mmap(nullptr, (apart += 1U << 20U), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const at = map(memories()[ptr].file, size);
  if (at != nullptr) memories()[at] = {-1, size};
  return at;
}
int rte_gpu_mem_cpu_unmap(std::int16_t, void* ptr) {
  for (auto it = memories().begin(); it != memories().end(); ++it) {
    if (it->second.file >= 0 || ptr == nullptr) continue;
    ::munmap(it->first, it->second.bytes);
    memories().erase(it);
    return 0;
  }
  return -EINVAL;
}
int rte_gpu_mem_free(std::int16_t, void* ptr) {
  const auto it = memories().find(ptr);
  if (it == memories().end()) return -EINVAL;
  ::munmap(it->first, it->second.bytes);
  ::close(it->second.file);
  memories().erase(it);
  return 0;
}
}

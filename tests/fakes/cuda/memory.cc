// Device memory, whose addresses the process knows but cannot read, and pinned memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/fakes/cuda/state.h"

namespace fake_cuda {

DeviceBlock* block_of(State& s, std::uint64_t address) {
  auto at = s.device_blocks.upper_bound(address);
  if (at == s.device_blocks.begin()) return nullptr;
  --at;
  DeviceBlock& block = at->second;
  return address < block.base + block.bytes ? &block : nullptr;
}

unsigned char* touchable(State& s, std::uint64_t address, std::size_t bytes) {
  DeviceBlock* block = block_of(s, address);
  if (block == nullptr) return reinterpret_cast<unsigned char*>(address);
  if (address + bytes > block->base + block->bytes) return nullptr;
  return block->alias + (address - block->base);
}

std::uint64_t make_device_block(State& s, std::size_t bytes, int device) {
  const std::size_t mapped = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  const int descriptor = memfd_create("device memory", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(mapped)) != 0) return 0;
  void* alias = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  void* base = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, descriptor, 0);
  const auto address = reinterpret_cast<std::uint64_t>(base);
  s.device_blocks[address] = {address,          static_cast<unsigned char*>(alias), bytes, mapped, descriptor, device,
                              s.next_block_id++};
  ++s.counts.device_blocks;
  return address;
}

int free_device_block(State& s, std::uint64_t address) {
  const auto at = s.device_blocks.find(address);
  if (at == s.device_blocks.end()) return kInvalidValue;
  munmap(at->second.alias, at->second.mapped);
  munmap(reinterpret_cast<void*>(at->second.base), at->second.mapped);
  close(at->second.descriptor);
  s.device_blocks.erase(at);
  --s.counts.device_blocks;
  return kSuccess;
}

}  // namespace fake_cuda

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C names' side of it

extern "C" {

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemAlloc")) return no;
  *address = make_device_block(s, bytes, contexts().back());
  return *address != 0 ? kSuccess : kOutOfMemory;
}
int cuMemFree_v2(std::uint64_t address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return free_device_block(s, address);
}
int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemHostAlloc")) return no;
  std::size_t pinned = bytes;
  for (const auto& [block, size] : s.host_blocks) pinned += size;
  if (pinned > s.settings.host_bytes_max) return kOutOfMemory;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  std::memset(memory, kPoison, std::min<std::size_t>(bytes, kPage));
  s.host_blocks[static_cast<unsigned char*>(memory)] = bytes;
  ++s.counts.host_blocks;
  ++s.counts.host_blocks_made;
  *pointer = memory;
  return kSuccess;
}
int cuMemFreeHost(void* pointer) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto at = s.host_blocks.find(static_cast<unsigned char*>(pointer));
  if (at == s.host_blocks.end()) return kInvalidValue;
  const auto first = s.copying.lower_bound(at->first);
  if (first != s.copying.end() && *first < at->first + at->second)
    s.misused("pinned memory was freed while a copy used it");
  munmap(at->first, at->second);
  s.host_blocks.erase(at);
  --s.counts.host_blocks;
  return kSuccess;
}
int cuMemHostGetDevicePointer_v2(std::uint64_t* address, void* pointer, unsigned) {
  *address = reinterpret_cast<std::uint64_t>(pointer);
  return kSuccess;
}

int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, std::uint64_t address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuPointerGetAttributes", false)) return no;
  const DeviceBlock* block = block_of(s, address);
  const bool pinned = std::ranges::any_of(s.host_blocks, [&](const auto& host) {
    const auto begin = reinterpret_cast<std::uint64_t>(host.first);
    return address >= begin && address < begin + host.second;
  });
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2:
        *static_cast<unsigned*>(data[i]) = block != nullptr ? 2 : (pinned ? 1 : 0);
        break;
      case 7:
        *static_cast<unsigned long long*>(data[i]) = block != nullptr ? block->id : 0;
        break;
      case 8:
        *static_cast<unsigned*>(data[i]) = 0;
        break;
      case 9:
        *static_cast<int*>(data[i]) = block != nullptr ? block->device : -2;
        break;
      default:
        return kInvalidValue;
    }
  }
  return kSuccess;
}
int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* bytes, std::uint64_t within) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemGetAddressRange")) return no;
  const DeviceBlock* block = block_of(s, within);
  if (block == nullptr) return kInvalidValue;
  *begin = block->base;
  *bytes = block->bytes;
  return kSuccess;
}
int cuMemGetHandleForAddressRange(void* handle, std::uint64_t begin, std::size_t bytes, int kind, unsigned long long) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemGetHandleForAddressRange")) return no;
  const DeviceBlock* block = block_of(s, begin);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (!s.settings.dma_buf) return kNotSupported;
  if (kind != 1 || block == nullptr || begin % page != 0 || bytes % page != 0 ||
      begin + bytes > block->base + block->mapped)
    return kInvalidValue;
  *static_cast<int*>(handle) = dup(block->descriptor);
  ++s.counts.descriptors;
  return kSuccess;
}
int cuFlushGPUDirectRDMAWrites(int, int) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuFlushGPUDirectRDMAWrites")) return no;
  ++s.counts.flushes;
  return kSuccess;
}

}  // extern "C"

#include "bench/manager/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

bool counts = false;  // off in other measurements, which need no counts
std::ptrdiff_t in_use = 0;
std::ptrdiff_t most_in_use = 0;

}  // namespace

MemoryCount::MemoryCount() {
  in_use = most_in_use = 0;
  counts = true;
}
MemoryCount::~MemoryCount() {
  counts = false;
}
std::size_t MemoryCount::most() const {
  return static_cast<std::size_t>(most_in_use);
}

void* operator new(std::size_t size) {
  void* const at = std::malloc(size == 0 ? 1 : size);
  if (at == nullptr) throw std::bad_alloc();
  if (counts) most_in_use = std::max(most_in_use, in_use += static_cast<std::ptrdiff_t>(malloc_usable_size(at)));
  return at;
}
void operator delete(void* at) noexcept {
  if (counts && at != nullptr) in_use -= static_cast<std::ptrdiff_t>(malloc_usable_size(at));
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  operator delete(at);
}

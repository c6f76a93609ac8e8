#pragma once
// Separate pages for the large buffers of lanes. A process makes and frees lanes for months: it must not keep memory
// that a lane gives back because a small object lies behind it on the heap.
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace tributary::kernels {

/// Zeroed memory, aligned to a page. The destructor gives it back to the system. The constructor throws std::bad_alloc.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : memory_(map(bytes), Unmap{bytes}) {}
  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return memory_.get_deleter().bytes; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data(), size()}; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* p) const noexcept { ::munmap(p, bytes); }
  };
  static std::byte* map(std::size_t bytes) {
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(pages);
  }

  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace tributary::kernels

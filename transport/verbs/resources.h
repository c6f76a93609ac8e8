#pragma once
// Owners of the objects that libibverbs, librdmacm and the system make.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tributary::transport::verbs {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* what) const noexcept {
    destroy(what);
  }
};

using ProtectionDomainPtr = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using CompletionQueuePtr = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using CompletionChannelPtr = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using MemoryRegionPtr = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
struct DestroyWindow {  // a type, because the library's function has internal linkage
  void operator()(ibv_mw* window) const noexcept { ibv_dealloc_mw(window); }
};
using MemoryWindowPtr = std::unique_ptr<ibv_mw, DestroyWindow>;
using EventChannelPtr = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;
using ConnectionIdPtr = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_id>>;  // destroyed after its queue pair

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// Zeroed pages to which a peer may write: they never held other data.
class MappedMemory {
 public:
  MappedMemory() = default;
  /// Allocates the pages; throws std::bad_alloc.
  explicit MappedMemory(std::size_t bytes) : size_(bytes) {
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    at_ = static_cast<std::byte*>(pages);
  }
  MappedMemory(MappedMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedMemory() {
    if (at_ != nullptr) ::munmap(at_, size_);
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {at_, size_}; }

 private:
  std::byte* at_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tributary::transport::verbs

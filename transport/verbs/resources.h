#pragma once
// Owners of what libibverbs and librdmacm hand out.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <memory>
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
struct DestroyWindow {  // the library's function has no linkage
  void operator()(ibv_mw* window) const noexcept { ibv_dealloc_mw(window); }
};
using MemoryWindowPtr = std::unique_ptr<ibv_mw, DestroyWindow>;
using EventChannelPtr = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;
using ConnectionIdPtr = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_id>>;  // its queue pair first

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

}  // namespace tributary::transport::verbs

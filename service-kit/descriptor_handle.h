#pragma once
#include <unistd.h>

#include <utility>

namespace tributary::service {

/// Owns a file descriptor that one thread passes to another, and closes it unless the other thread takes it.
class DescriptorHandle {
 public:
  explicit DescriptorHandle(int fd) noexcept : fd_(fd) {}
  ~DescriptorHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  DescriptorHandle(const DescriptorHandle&) = delete;
  DescriptorHandle& operator=(const DescriptorHandle&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace tributary::service

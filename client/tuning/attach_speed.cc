#include "client/tuning/attach_speed.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace tributary::tuning {
namespace {

/// Beyond a core's own cache, like the vectors that ranks attach to. The pieces are as long as theirs.
constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr std::size_t kPiece = std::size_t{256} << 10;
/// The least of so many times counts, because other work may disturb some of them.
constexpr int kTimes = 5;

struct Unmap {
  void operator()(std::byte* memory) const noexcept { munmap(memory, kBytes); }
};

template <class Copy>
double seconds_of(Copy copy) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < kBytes; at += kPiece) {
    if (!copy(at)) return -1;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool measure() {
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  const std::unique_ptr<std::byte, Unmap> from(static_cast<std::byte*>(mapped));
  std::memset(from.get(), 1, kBytes);
  std::vector<std::byte> to(kPiece);
  double by_process = 1, by_kernel = 1;
  for (int i = 0; i < kTimes; ++i) {
    by_process = std::min(by_process, seconds_of([&](std::size_t at) {
                            std::memcpy(to.data(), from.get() + at, kPiece);
                            return to[at / kPiece] == std::byte{1};  // so that the compiler keeps the copy
                          }));
    const double took = seconds_of([&](std::size_t at) {
      const iovec here{.iov_base = to.data(), .iov_len = kPiece}, there{.iov_base = from.get() + at, .iov_len = kPiece};
      return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(kPiece);
    });
    if (took < 0) return false;  // the kernel forbids it
    by_kernel = std::min(by_kernel, took);
  }
  return attach_pays(by_process, by_kernel);
}

}  // namespace

bool attach_is_quick() noexcept {
  static const bool quick = [] {
    try {
      return measure();
    } catch (...) {  // no memory
      return false;
    }
  }();
  return quick;
}

}  // namespace tributary::tuning

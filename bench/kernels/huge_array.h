#pragma once
// Memory for measurements outside of the caches: whole pages from the system, huge pages where it has them. The
// constructor writes to each page before the use.
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tributary::bench {

class HugeArray {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;

  explicit HugeArray(std::size_t bytes) : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes_));
    if (data_ == nullptr) std::abort();
    madvise(data_, bytes_, MADV_HUGEPAGE);  // this is only advice: small pages also work
    std::memset(data_, 0, bytes_);
  }
  HugeArray(HugeArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  HugeArray& operator=(HugeArray&&) = delete;
  ~HugeArray() { std::free(data_); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace tributary::bench

#pragma once
// Device memory of a real GPU, and the main function of programs that test with one. A program that finds no GPU prints
// the reason, and ends with the exit status that ctest takes for a skipped test.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "client/gpu/context.h"

namespace real_gpu {

using tributary::client::gpu::Context;
using tributary::client::gpu::CudaDriver;
using tributary::client::gpu::CudaResult;
using tributary::client::gpu::DeviceAddress;

/// The first GPU's context, which run_tests() keeps while the tests run: the driver destroys a context that nobody
/// holds.
inline std::shared_ptr<Context> context;

/// Returns the driver of the first GPU, or a sentence with the reason why there is none.
[[nodiscard]] inline tributary::Result<std::unique_ptr<CudaDriver>> open_driver() {
  auto driver = tributary::kernels::cuda::open_cuda_driver();
  if (!driver) return driver;
  int count = 0;
  (*driver)->device_count(count);
  if (count == 0) return tributary::fail(tributary::Errc::unsupported, "the CUDA driver sees no GPU");
  return driver;
}

/// Runs all tests of the program with the first GPU; returns the program's exit status.
inline int run_tests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr int kSkipped = 77;
  const auto driver = open_driver();
  if (!driver) {
    std::printf("skipped: %s\n", driver.error().message.c_str());
    return kSkipped;
  }
  auto retained = Context::retain(**driver, 0);
  if (!retained) {
    std::printf("%s\n", retained.error().message.c_str());
    return 1;
  }
  context = std::move(*retained);
  const int status = RUN_ALL_TESTS();
  context.reset();
  return status;
}

/// A block of device memory. Only copies that the test waits for access the block; the destructor frees it.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    const Context::Current current(*context_);
    require(context_->driver().memory_allocate(address_, bytes), "allocating");
    require(context_->driver().stream_create(stream_), "making a stream");
  }
  explicit DeviceBytes(const std::vector<std::byte>& content) : DeviceBytes(content.size()) { write(content); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() {
    const Context::Current current(*context_);
    context_->driver().stream_destroy(stream_);
    context_->driver().memory_free(address_);
  }
  void write(const std::vector<std::byte>& content) const {
    move(address_, reinterpret_cast<DeviceAddress>(content.data()), content.size());
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  [[nodiscard]] std::byte* pointer() const noexcept { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(bytes_);
    move(reinterpret_cast<DeviceAddress>(bytes.data()), address_, bytes_);
    return bytes;
  }

 private:
  void require(CudaResult result, const char* what) const {
    if (result != CudaResult::success) throw std::runtime_error(cuda_error(context_->driver(), result, what).message);
  }
  void move(DeviceAddress to, DeviceAddress from, std::size_t bytes) const {
    const Context::Current current(*context_);
    require(context_->driver().copy(to, from, bytes, stream_), "copying");
    require(context_->driver().stream_synchronize(stream_), "waiting");
  }

  std::shared_ptr<Context> context_ = real_gpu::context;
  std::size_t bytes_;
  DeviceAddress address_ = 0;
  tributary::kernels::cuda::StreamHandle stream_ = nullptr;
};

}  // namespace real_gpu

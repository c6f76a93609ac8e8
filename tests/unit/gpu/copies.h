#pragma once
// What the tests of the copies share.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "fake_cuda.h"
#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu::test {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Device memory for as long as it lives.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes, int device = 0)
      : address_(fake_cuda::allocate(bytes, device)), bytes_(bytes) {}
  explicit DeviceBytes(const Bytes& content) : DeviceBytes(content.size()) {
    fake_cuda::write(address_, content.data(), content.size());
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { fake_cuda::free(address_); }
  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] std::byte* pointer() const noexcept { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] Bytes content() const {
    Bytes bytes(bytes_);
    fake_cuda::read(address_, bytes.data(), bytes_);
    return bytes;
  }

 private:
  std::uint64_t address_;
  std::size_t bytes_;
};

/// Begins with a driver as new, and ends with one that lacks nothing.
class WithFakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    fake_cuda::reset();
    auto found = kernels::cuda::cuda_driver_of_process();
    ASSERT_TRUE(found && *found != nullptr);
    driver = *found;
    ASSERT_EQ(driver->init(), kernels::cuda::CudaResult::success);
  }
  void TearDown() override {
    const fake_cuda::Counts left = fake_cuda::counts();
    EXPECT_EQ(left.contexts, 0);
    EXPECT_EQ(left.pushed, 0);
    EXPECT_EQ(left.streams, 0);
    EXPECT_EQ(left.events, 0);
    EXPECT_EQ(left.host_blocks, 0);
    EXPECT_EQ(left.device_blocks, 0);
    EXPECT_EQ(left.misuses, 0U) << fake_cuda::misuse();
  }
  kernels::cuda::CudaDriver* driver = nullptr;
};

}  // namespace tributary::client::gpu::test

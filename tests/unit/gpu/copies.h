#pragma once
// Helpers shared by the tests of the copies.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/fakes/cuda/device_bytes.h"
#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu::test {

using Bytes = std::vector<std::byte>;
using fake_cuda::DeviceBytes;

inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Gives each test a new fake driver, and the pointer by which the library uses it.
class WithFakeDriver : public fake_cuda::WithDriver {
 protected:
  void SetUp() override {
    fake_cuda::WithDriver::SetUp();
    auto found = kernels::cuda::cuda_driver_of_process();
    ASSERT_TRUE(found && *found != nullptr);
    driver = *found;
    ASSERT_EQ(driver->init(), kernels::cuda::CudaResult::success);
  }
  kernels::cuda::CudaDriver* driver = nullptr;
};

}  // namespace tributary::client::gpu::test

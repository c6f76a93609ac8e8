#pragma once
// Device memory of the fake driver, and a fixture that checks after each test that the test freed all memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fakes/cuda/fake_cuda.h"

namespace fake_cuda {

/// A block of device memory; its destructor frees the block.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes, int device = 0) : address_(allocate(bytes, device)), bytes_(bytes) {}
  explicit DeviceBytes(const std::vector<std::byte>& content) : DeviceBytes(content.size()) { write(content); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { free(address_); }
  void write(const std::vector<std::byte>& content) const {
    fake_cuda::write(address_, content.data(), content.size());
  }
  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  [[nodiscard]] std::byte* pointer() const noexcept { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(bytes_);
    read(address_, bytes.data(), bytes_);
    return bytes;
  }

 private:
  std::uint64_t address_;
  std::size_t bytes_;
};

/// Checks that no object of the driver is still in use, and that nothing was used in a wrong way.
inline void expect_nothing_left() {
  const Counts left = counts();
  EXPECT_EQ(left.contexts, 0);
  EXPECT_EQ(left.pushed, 0);
  EXPECT_EQ(left.streams, 0);
  EXPECT_EQ(left.events, 0);
  EXPECT_EQ(left.host_blocks, 0);
  EXPECT_EQ(left.device_blocks, 0);
  EXPECT_EQ(left.misuses, 0U) << misuse();
}

/// Begins each test with a new driver, and checks at the test's end that no object of the driver is still in use.
class WithDriver : public testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { expect_nothing_left(); }
};

}  // namespace fake_cuda

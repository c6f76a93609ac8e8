#pragma once
// Device memory of the fake driver, and a fixture that sees that nothing of the driver is left: for all tests with it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fake_cuda.h"

namespace fake_cuda {

/// For as long as it lives.
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

/// Begins with a driver as new, and ends with one that lacks nothing.
class WithDriver : public testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    const Counts left = counts();
    EXPECT_EQ(left.contexts, 0);
    EXPECT_EQ(left.pushed, 0);
    EXPECT_EQ(left.streams, 0);
    EXPECT_EQ(left.events, 0);
    EXPECT_EQ(left.host_blocks, 0);
    EXPECT_EQ(left.device_blocks, 0);
    EXPECT_EQ(left.misuses, 0U) << misuse();
  }
};

}  // namespace fake_cuda

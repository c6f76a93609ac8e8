#pragma once
// Memory of a GPU for tests of the C API. Two programs run the same tests: client_gpu_test over a fake driver
// (gpu_memory_fake.cc), client_gpu_device_test over the real driver (gpu_memory_device.cc).
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "tests/system/client/tensors.h"

namespace tributary::test {

/// A block of GPU 0's memory; its destructor frees the block. The program's driver is behind Block.
class DeviceBytes {
 public:
  explicit DeviceBytes(const Bytes& content);
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes();
  [[nodiscard]] std::byte* pointer() const;
  void write(const Bytes& content) const;
  [[nodiscard]] Bytes content() const;

 private:
  class Block;
  std::unique_ptr<const Block> block_;
};

/// Bytes in host memory or in a GPU's memory.
class Memory {
 public:
  Memory(bool on_gpu, const Bytes& content) {
    if (on_gpu) {
      device_.emplace(content);
    } else {
      host_ = content;
    }
  }
  [[nodiscard]] std::byte* data() { return device_ ? device_->pointer() : host_.data(); }
  void write(const Bytes& content) {
    if (device_) return device_->write(content);
    host_ = content;
  }
  [[nodiscard]] Bytes content() const { return device_ ? device_->content() : host_; }

 private:
  std::optional<DeviceBytes> device_;
  Bytes host_;
};

/// Tests with a GPU. Over the fake driver each test begins with a new driver, and must leave no object of it behind.
class Gpu : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
};

}  // namespace tributary::test

// GPU memory over the fake driver (tests/fakes/cuda/fake_cuda.h).
#include "tests/system/client/gpu_memory.h"

#include "tests/fakes/cuda/device_bytes.h"

namespace tributary::test {

class DeviceBytes::Block : public fake_cuda::DeviceBytes {
  using fake_cuda::DeviceBytes::DeviceBytes;
};

DeviceBytes::DeviceBytes(const Bytes& content) : block_(std::make_unique<Block>(content)) {}
DeviceBytes::~DeviceBytes() = default;
std::byte* DeviceBytes::pointer() const {
  return block_->pointer();
}
void DeviceBytes::write(const Bytes& content) const {
  block_->write(content);
}
Bytes DeviceBytes::content() const {
  return block_->content();
}

void Gpu::SetUp() {
  fake_cuda::reset();
}
void Gpu::TearDown() {
  fake_cuda::expect_nothing_left();
}

}  // namespace tributary::test

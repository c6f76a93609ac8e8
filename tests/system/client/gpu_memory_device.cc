// GPU memory over the real driver, which the program loads before its tests: the client uses the driver of its process.
// The driver does not tell how many objects exist, so no test checks that here.
#include "tests/system/client/gpu_memory.h"

#include "tests/unit/gpu/real_gpu.h"

namespace tributary::test {

class DeviceBytes::Block : public real_gpu::DeviceBytes {
  using real_gpu::DeviceBytes::DeviceBytes;
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

void Gpu::SetUp() {}
void Gpu::TearDown() {}

}  // namespace tributary::test

int main(int argc, char** argv) {
  return real_gpu::run_tests(argc, argv);
}

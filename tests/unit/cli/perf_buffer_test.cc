// The benchmark's buffers, with a fake CUDA driver, whose memory the processor cannot touch.
#include "client/cli/perf/buffer.h"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/fakes/cuda/device_bytes.h"

namespace tributary::cli {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 10000;

class PerfBufferOnGpu : public fake_cuda::WithDriver {};

TEST(PerfBuffer, InHostMemoryHasOnePlace) {
  auto buffer = PerfBuffer::allocate(kBytes, nullptr);
  ASSERT_TRUE(buffer) << buffer.error().message;
  EXPECT_EQ(buffer->for_calls(), buffer->on_host());
  EXPECT_TRUE(buffer->upload(kBytes));
  EXPECT_TRUE(buffer->download(kBytes));
}

TEST_F(PerfBufferOnGpu, CopiesToTheGpuAndBack) {
  auto gpu = PerfGpu::open(0);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ((*gpu)->name(), "Fake GPU");
  auto buffer = PerfBuffer::allocate(kBytes, *gpu);
  ASSERT_TRUE(buffer) << buffer.error().message;
  ASSERT_NE(buffer->for_calls(), buffer->on_host());
  const auto address = reinterpret_cast<std::uint64_t>(buffer->for_calls());
  std::memset(buffer->on_host(), 1, kBytes);
  ASSERT_TRUE(buffer->upload(kBytes));
  std::vector<std::byte> there(kBytes);
  fake_cuda::read(address, there.data(), kBytes);
  EXPECT_EQ(there, std::vector(kBytes, std::byte{1}));
  fake_cuda::write(address, std::vector(kBytes, std::byte{2}).data(), kBytes);
  ASSERT_TRUE(buffer->download(kBytes - 1));
  EXPECT_EQ(buffer->on_host()[kBytes - 2], std::byte{2});
  EXPECT_EQ(buffer->on_host()[kBytes - 1], std::byte{1});
  ASSERT_TRUE(buffer->upload(0));
}

TEST_F(PerfBufferOnGpu, LiesOnTheGpuOfTheLocalRankModuloTheNumberOfGpus) {
  fake_cuda::settings().devices = 3;
  for (const std::uint32_t local_rank : {0U, 2U, 3U, 7U}) {
    const auto gpu = PerfGpu::open(local_rank);
    ASSERT_TRUE(gpu) << gpu.error().message;
    EXPECT_EQ((*gpu)->device(), static_cast<int>(local_rank % 3));
  }
}

TEST_F(PerfBufferOnGpu, SaysWhyNoGpuCanBeUsed) {
  const auto expect_reason = [](const std::string& reason) {
    const auto gpu = PerfGpu::open(0);
    ASSERT_FALSE(gpu);
    EXPECT_EQ(gpu.error().code, Errc::unreachable);
    EXPECT_THAT(gpu.error().message,
                testing::AllOf(HasSubstr("--memory cuda: "), HasSubstr(reason), HasSubstr("or pass --memory host")));
  };
  fake_cuda::settings().devices = 0;
  expect_reason("the CUDA driver lists no GPU");
  fake_cuda::settings().devices = 1;
  for (const char* call : {"cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuStreamCreate"}) {
    fake_cuda::reset();
    fake_cuda::fail(call, fake_cuda::kNotSupported);
    expect_reason("CUDA_ERROR_NOT_SUPPORTED");
  }
}

TEST_F(PerfBufferOnGpu, SaysWhichCallOfTheDriverFailed) {
  auto gpu = PerfGpu::open(0);
  ASSERT_TRUE(gpu) << gpu.error().message;
  fake_cuda::fail("cuMemAlloc", fake_cuda::kOutOfMemory);
  const auto none = PerfBuffer::allocate(kBytes, *gpu);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::exhausted);
  EXPECT_THAT(none.error().message, HasSubstr("allocating 12288 bytes of GPU 0 failed: CUDA_ERROR_OUT_OF_MEMORY"));
  fake_cuda::reset();
  auto buffer = PerfBuffer::allocate(kBytes, *gpu);
  ASSERT_TRUE(buffer) << buffer.error().message;
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed);
  const auto copied = buffer->upload(kBytes);
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message, HasSubstr("copying 10000 bytes from or to the memory of GPU 0 failed"));
}

}  // namespace
}  // namespace tributary::cli

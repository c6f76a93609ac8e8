// Staging between a real GPU and the host: right bits, and the speed. Without a GPU the test is skipped, with the
// reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "client/gpu/memory_kind.h"
#include "client/gpu/path_choice.h"
#include "client/gpu/stager.h"
#include "tests/unit/gpu/real_gpu.h"

namespace tributary::client::gpu {
namespace {

using real_gpu::DeviceBytes;
using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(GpuDevice, KnowsTheOwnerOfMemory) {
  const DeviceBytes device(4096);
  const auto pool = std::make_shared<PinnedPool>(real_gpu::context, nullptr);
  const auto pinned = pool->take(4096);
  ASSERT_TRUE(pinned);
  const Bytes host(4096);
  EXPECT_EQ(*device_of(device.pointer() + 100), std::optional(0));
  EXPECT_EQ(*device_of((*pinned)->data()), std::nullopt);
  EXPECT_EQ(*device_of(host.data()), std::nullopt);
}

TEST(GpuDevice, SaysWhichPathItsDataTake) {
  const PathChoice choice = choose_path(
      {.gpu = gpu_facts(real_gpu::context->driver(), 0), .host = host_facts(), .transport = {.name = "tcp"}});
  std::printf("%s\n", choice.sentence.c_str());
  EXPECT_EQ(choice.path, CopyRoute::staging);
}

TEST(GpuDevice, StagesTheBitsDownAndUp) {
  Stager stager({});
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{65536}, (std::size_t{1} << 20) + 1, std::size_t{50'000'001}}) {
    const Bytes input = random_bytes(bytes, bytes);
    Bytes inverted = input;
    for (std::byte& byte : inverted) byte ^= std::byte{0xFF};
    DeviceBytes send(bytes), recv(bytes);
    send.write(input);
    auto call =
        stager.stage({.send = send.pointer(), .send_bytes = bytes, .recv = recv.pointer(), .recv_bytes = bytes});
    ASSERT_TRUE(call) << call.error().message;
    (*call)->begin();
    // Do what a lane does: use data as soon as they have arrived, and copy their result to the GPU.
    constexpr std::size_t kSegment = 65536;
    for (std::size_t at = 0; at < bytes; at += kSegment) {
      const std::size_t here = std::min(kSegment, bytes - at);
      while (!(*call)->input_ready((*call)->host().send + at + here)) std::this_thread::yield();
      for (std::size_t i = at; i < at + here; ++i) (*call)->host().recv[i] = (*call)->host().send[i] ^ std::byte{0xFF};
      (*call)->result_landed({(*call)->host().recv + at, here});
    }
    ASSERT_TRUE((*call)->finish(Status{}));
    EXPECT_EQ(recv.content(), inverted) << bytes;
    EXPECT_EQ(send.content(), input) << bytes;
  }
}

TEST(GpuDevice, TellsTheSpeedOfStaging) {
  Stager stager({});
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 20, std::size_t{256} << 20}) {
    const DeviceBytes send(bytes), recv(bytes);
    std::vector<double> seconds;
    for (int i = 0; i < 7; ++i) {
      const auto start = std::chrono::steady_clock::now();
      auto call =
          stager.stage({.send = send.pointer(), .send_bytes = bytes, .recv = recv.pointer(), .recv_bytes = bytes});
      ASSERT_TRUE(call) << call.error().message;
      (*call)->begin();
      for (std::size_t at = 0; at < bytes; at += StagedCall::kChunkBytes) {
        const std::size_t here = std::min(StagedCall::kChunkBytes, bytes - at);
        while (!(*call)->input_ready((*call)->host().send + at + here)) std::this_thread::yield();
        (*call)->result_landed({(*call)->host().recv + at, here});
      }
      ASSERT_TRUE((*call)->finish(Status{}));
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::sort(seconds);
    std::printf("%10zu bytes down and up at once: %9.1f us, %6.2f GB/s each way (median of 7; %.1f to %.1f us)\n",
                bytes, seconds[3] * 1e6, static_cast<double>(bytes) / seconds[3] * 1e-9, seconds[0] * 1e6,
                seconds[6] * 1e6);
  }
}

}  // namespace
}  // namespace tributary::client::gpu

int main(int argc, char** argv) {
  return real_gpu::run_tests(argc, argv);
}

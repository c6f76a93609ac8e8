// A large call with GPU memory through a tree. It runs where a service exists: a rank of `tributary run` is this
// program, and the group's ranks are threads of it. The test also prints the time of the call beside the time of the
// same call with host memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/system/client/gpu_memory.h"
#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"

namespace tributary::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = std::size_t{16} << 20;
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::size_t kCalls = 9;

tributary_info info_of(tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof(info);
  EXPECT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK) << last_error();
  return info;
}

/// Sums `input` over all ranks, again and again in the same memory; returns the median of the calls' milliseconds.
double sum_in_place(tributary_comm* comm, bool on_gpu, const Bytes& input, const Bytes& expected) {
  const tributary_info before = info_of(comm);
  std::array<double, kCalls> milliseconds{};
  Memory memory(on_gpu, input);
  for (double& passed : milliseconds) {
    memory.write(input);
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK) << last_error();
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(
        tributary_all_reduce(memory.data(), memory.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
        TRIBUTARY_OK)
        << last_error();
    passed = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(difference(expected, memory.content()), "");
  }
  const tributary_info after = info_of(comm);
  EXPECT_GE(after.bytes_in_network - before.bytes_in_network, kCalls * kBytes) << after.reason;
  EXPECT_EQ(after.bytes_fallback, before.bytes_fallback) << after.reason;
  EXPECT_EQ(after.bytes_local, before.bytes_local) << after.reason;
  std::ranges::sort(milliseconds);
  return milliseconds[kCalls / 2];
}

TEST_F(Gpu, LargeCallsGoThroughTheTreeOfTheService) {
  if (std::getenv("TRIBUTARY_MANAGER") == nullptr)
    GTEST_SKIP() << "TRIBUTARY_MANAGER is not set: start this program with `tributary run --ranks 1 --aggregators 1`";
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < kRanks; ++rank) inputs.push_back(reducible(DType::float32, ReduceOp::sum, kCount, rank));
  const Bytes expected = reduced(DType::float32, ReduceOp::sum, inputs);
  run_ranks(kRanks,
            [&](tributary_comm* comm, int rank) {
              const Bytes& input = inputs[static_cast<std::size_t>(rank)];
              const double on_gpu = sum_in_place(comm, true, input, expected);
              const double on_host = sum_in_place(comm, false, input, expected);
              if (rank == 0)
                std::printf(
                    "all_reduce of %zu bytes by %d ranks in-network: %.1f ms in GPU memory, %.1f ms in host "
                    "memory (medians of %zu)\n",
                    kBytes, kRanks, on_gpu, on_host, kCalls);
            },
            {.timeout = patience(Milliseconds(60'000)),
             .configure = [](int, tributary_config& config) { config.path = "in-network"; }});
}

}  // namespace
}  // namespace tributary::test

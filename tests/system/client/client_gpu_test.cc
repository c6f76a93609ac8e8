// Calls with GPU memory, over a fake driver (tests/fakes/cuda/fake_cuda.h) that gives errors, counts its objects, and
// delays copies. gpu_calls_test.cc has the tests that need no such driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/system/client/gpu_memory.h"
#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"

namespace tributary::test {
namespace {

using testing::HasSubstr;

TEST_F(Gpu, RegisteringMakesTheStreamsOfLaterCopies) {
  run_ranks(1, [](tributary_comm* comm, int) {
    Memory memory(true, Bytes(8192));
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, memory.data(), 8192, TRIBUTARY_MEM_CUDA, &mem), TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(fake_cuda::counts().streams, 2);
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_OK);
  });
}

TEST_F(Gpu, NoPinnedMemoryIsAnErrorOfTheCallAlone) {
  fake_cuda::settings().host_bytes_max = 1 << 20;
  run_ranks(2, [](tributary_comm* comm, int) {
    Memory large(true, Bytes(2 << 20)), small(true, Bytes(4));
    EXPECT_EQ(tributary_all_reduce(large.data(), large.data(), 2 << 20, TRIBUTARY_UINT8, TRIBUTARY_SUM, comm, nullptr),
              TRIBUTARY_ERROR_EXHAUSTED);
    EXPECT_THAT(last_error(), HasSubstr("pinning 2097152 bytes of host memory for data of GPU 0"));
    // No rank has begun the call, and every rank knows this, so the communicator goes on.
    EXPECT_EQ(tributary_all_reduce(small.data(), small.data(), 1, TRIBUTARY_INT32, TRIBUTARY_SUM, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
  });
}

TEST_F(Gpu, AnInputThatCannotBeReadFailsTheCallOnEveryRank) {
  for (const bool broken : {false, true}) {
    fake_cuda::reset();
    run_ranks_without_end(2,
                          [&](tributary_comm* comm, int rank) {
                            EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK);
                            Memory memory(rank == 1, Bytes(5 << 20));
                            if (rank == 1) {
                              if (broken) {
                                fake_cuda::break_context_in_copy(fake_cuda::kIllegalAddress, 2);
                              } else {
                                fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed, 2);
                              }
                            }
                            const auto status = tributary_all_reduce(memory.data(), memory.data(), 5 << 20,
                                                                     TRIBUTARY_UINT8, TRIBUTARY_SUM, comm, nullptr);
                            EXPECT_NE(status, TRIBUTARY_OK);
                            EXPECT_THAT(last_error(),
                                        HasSubstr("copying a call's input from GPU 0 failed: CUDA_ERROR_"));
                            static_cast<void>(tributary_comm_destroy(comm));
                          },
                          {.timeout = patience(Milliseconds(20'000))});
  }
}

TEST_F(Gpu, AResultThatCannotBeDeliveredFailsTheCallThereAlone) {
  run_ranks_without_end(2, [&](tributary_comm* comm, int rank) {
    Memory send(false, reducible(DType::int32, ReduceOp::sum, 1000, rank)), recv(rank == 1, Bytes(4000));
    if (rank == 1) fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed);
    const auto status =
        tributary_all_reduce(send.data(), recv.data(), 1000, TRIBUTARY_INT32, TRIBUTARY_SUM, comm, nullptr);
    if (rank == 0) {
      EXPECT_EQ(status, TRIBUTARY_OK) << last_error();
    } else {
      EXPECT_EQ(status, TRIBUTARY_ERROR_SYSTEM);
      EXPECT_THAT(last_error(), HasSubstr("copying a call's result to GPU 0 failed: CUDA_ERROR_LAUNCH_FAILED"));
    }
    static_cast<void>(tributary_comm_destroy(comm));
  });
}

TEST_F(Gpu, AbortingWhileCopiesAreUnderWayTouchesNothingAfterwards) {
  run_ranks_without_end(2, [&](tributary_comm* comm, int) {
    Memory memory(true, Bytes(8 << 20));
    tributary_request* request = nullptr;
    if (shares_memory()) {  // with shared memory the call itself waits for the copy
      EXPECT_EQ(tributary_comm_abort(comm), TRIBUTARY_OK);
      return;
    }
    EXPECT_EQ(
        tributary_all_reduce(memory.data(), memory.data(), 8 << 20, TRIBUTARY_UINT8, TRIBUTARY_SUM, comm, &request),
        TRIBUTARY_OK);
    EXPECT_EQ(tributary_comm_abort(comm), TRIBUTARY_OK);
  });
}

}  // namespace
}  // namespace tributary::test

// Calls with GPU memory, over the fake driver or the real one (gpu_memory.h): the same bits as with host memory, for
// every choice of ranks with GPU memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/system/client/gpu_memory.h"
#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"

namespace tributary::test {
namespace {

using testing::HasSubstr;

struct Case {
  Collective collective;
  bool in_place;
};

bool sends_all_parts(Collective c) {
  return c == Collective::reduce_scatter || c == Collective::all_to_all || c == Collective::scatter;
}
bool receives_all_parts(Collective c) {
  return c == Collective::all_gather || c == Collective::all_to_all || c == Collective::gather;
}

tributary_status call(const Case& c, const void* send, void* recv, std::size_t count, tributary_comm* comm,
                      tributary_request** request) {
  constexpr int kRoot = 1;
  switch (c.collective) {
    case Collective::all_reduce:
      return tributary_all_reduce(send, recv, count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, request);
    case Collective::reduce:
      return tributary_reduce(send, recv, count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, kRoot, comm, request);
    case Collective::reduce_scatter:
      return tributary_reduce_scatter(send, recv, count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, request);
    case Collective::broadcast:
      return tributary_broadcast(send, recv, count, TRIBUTARY_FLOAT32, kRoot, comm, request);
    case Collective::all_gather:
      return tributary_all_gather(send, recv, count, TRIBUTARY_FLOAT32, comm, request);
    case Collective::all_to_all:
      return tributary_all_to_all(send, recv, count, TRIBUTARY_FLOAT32, comm, request);
    case Collective::gather:
      return tributary_gather(send, recv, count, TRIBUTARY_FLOAT32, kRoot, comm, request);
    case Collective::scatter:
      return tributary_scatter(send, recv, count, TRIBUTARY_FLOAT32, kRoot, comm, request);
    case Collective::barrier:
      return tributary_barrier(comm, request);
  }
  return TRIBUTARY_ERROR_INTERNAL;
}

/// Returns the contents of both buffers after the call; `send_on_gpu` and `recv_on_gpu` say which buffers lie in a
/// GPU's memory.
std::pair<Bytes, Bytes> outcome(const Case& c, std::size_t count, int rank, int nranks, bool send_on_gpu,
                                bool recv_on_gpu, bool blocking, tributary_comm* comm) {
  const auto ranks = static_cast<std::size_t>(nranks), own = static_cast<std::size_t>(rank);
  const std::size_t bytes = count * sizeof(float);
  const std::size_t sent = bytes * (sends_all_parts(c.collective) ? ranks : 1);
  const std::size_t received = bytes * (receives_all_parts(c.collective) ? ranks : 1);
  const Bytes input = reducible(DType::float32, ReduceOp::sum, sent / sizeof(float), rank);
  tributary_request* request = nullptr;
  tributary_request** const out = blocking ? nullptr : &request;
  Bytes whole(std::max(sent, received), std::byte{7});
  Memory send(send_on_gpu, input), recv(recv_on_gpu, Bytes(received, std::byte{7}));
  Memory both(recv_on_gpu, whole);
  const void* from = send.data();
  void* to = recv.data();
  if (c.in_place) {
    const std::size_t at = received > sent ? own * bytes : 0;
    std::memcpy(whole.data() + at, input.data(), sent);
    both.write(whole);
    from = both.data() + at;
    to = both.data() + (sent > received ? own * bytes : 0);
  }
  EXPECT_EQ(call(c, from, to, count, comm, out), TRIBUTARY_OK) << last_error();
  if (request != nullptr) {
    EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
  }
  if (c.in_place) return {both.content(), {}};
  return {send.content(), recv.content()};
}

class GpuCollectives : public Gpu, public testing::WithParamInterface<Case> {};

TEST_P(GpuCollectives, GiveTheBitsOfHostMemory) {
  constexpr int kRanks = 3;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{700'001}}) {
    // ranks with GPU memory: all ranks; one rank; and one rank only for its input
    run_ranks(kRanks, [&](tributary_comm* comm, int rank) {
      const auto with = [&](bool send, bool recv, bool blocking) {
        return outcome(GetParam(), count, rank, kRanks, send, recv, blocking, comm);
      };
      const auto expected = with(false, false, true);
      const auto same = [&](const std::pair<Bytes, Bytes>& got, const char* what) {
        EXPECT_EQ(difference(expected.first, got.first), "") << what << ", rank " << rank << ", " << count;
        EXPECT_EQ(difference(expected.second, got.second), "") << what << ", rank " << rank << ", " << count;
      };
      same(with(true, true, true), "all on the GPU");
      same(with(true, true, false), "all on the GPU, waited for later");
      same(with(rank == 1, rank == 1, true), "one rank on the GPU");
      if (!GetParam().in_place) same(with(rank == 0, rank == 2, false), "sides apart");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuCollectives,
                         testing::Values(Case{Collective::all_reduce, false}, Case{Collective::all_reduce, true},
                                         Case{Collective::reduce, false}, Case{Collective::reduce, true},
                                         Case{Collective::reduce_scatter, false},
                                         Case{Collective::reduce_scatter, true}, Case{Collective::broadcast, false},
                                         Case{Collective::broadcast, true}, Case{Collective::all_gather, false},
                                         Case{Collective::all_gather, true}, Case{Collective::all_to_all, false},
                                         Case{Collective::gather, false}, Case{Collective::gather, true},
                                         Case{Collective::scatter, false}, Case{Collective::scatter, true},
                                         Case{Collective::barrier, false}),
                         [](const auto& one) {
                           return std::string(to_string(one.param.collective)) +
                                  (one.param.in_place ? "_in_place" : "");
                         });

TEST_F(Gpu, MessagesGoBetweenGpuAndHostMemory) {
  const Bytes content = any_bytes(3'000'000, 0);
  run_ranks(2, [&](tributary_comm* comm, int rank) {
    for (const bool sender_on_gpu : {true, false}) {
      Memory memory((rank == 0) == sender_on_gpu, rank == 0 ? content : Bytes(content.size()));
      if (rank == 0) {
        EXPECT_EQ(tributary_send(memory.data(), content.size(), TRIBUTARY_UINT8, 1, comm, nullptr), TRIBUTARY_OK);
      } else {
        EXPECT_EQ(tributary_recv(memory.data(), content.size(), TRIBUTARY_UINT8, 0, comm, nullptr), TRIBUTARY_OK);
        EXPECT_EQ(difference(content, memory.content()), "");
      }
    }
  });
}

TEST_F(Gpu, ManyCallsAtOnceEndInAnyOrderWithTheirOwnBits) {
  constexpr int kRanks = 2, kCalls = 20;
  run_ranks(kRanks, [&](tributary_comm* comm, int rank) {
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<tributary_request*> requests(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      const auto count = 1 + static_cast<std::size_t>(i) * 40'000;
      memory.push_back(std::make_unique<Memory>(i % 3 != 2, reducible(DType::int32, ReduceOp::sum, count, rank + i)));
      ASSERT_EQ(tributary_all_reduce(memory.back()->data(), memory.back()->data(), count, TRIBUTARY_INT32,
                                     TRIBUTARY_SUM, comm, &requests[static_cast<std::size_t>(i)]),
                TRIBUTARY_OK)
          << last_error();
    }
    for (int i = kCalls - 1; i >= 0; --i)
      EXPECT_EQ(tributary_wait(requests[static_cast<std::size_t>(i)], -1), TRIBUTARY_OK) << last_error();
    for (int i = 0; i < kCalls; ++i) {
      const auto count = 1 + static_cast<std::size_t>(i) * 40'000;
      const Bytes expected = reduced(
          DType::int32, ReduceOp::sum,
          {reducible(DType::int32, ReduceOp::sum, count, i), reducible(DType::int32, ReduceOp::sum, count, i + 1)});
      EXPECT_EQ(difference(expected, memory[static_cast<std::size_t>(i)]->content()), "") << i;
    }
  });
}

TEST_F(Gpu, PremultipliedSumsHaveTheFactorsOfTheirRanks) {
  constexpr int kRanks = 2;
  constexpr std::size_t kCount = 700'001;
  run_ranks(kRanks, [&](tributary_comm* comm, int rank) {
    for (const int on_gpu : {1, 2, 3}) {
      const std::int32_t factor = rank + 2;
      tributary_op op = TRIBUTARY_SUM;
      ASSERT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_INT32, &op), TRIBUTARY_OK) << last_error();
      std::vector<Bytes> products;
      for (int r = 0; r < kRanks; ++r) {
        const Bytes input = reducible(DType::int32, ReduceOp::sum, kCount, r);
        products.push_back(
            reduced(DType::int32, ReduceOp::sum, std::vector<Bytes>(static_cast<std::size_t>(r + 2), input)));
      }
      const Bytes input = reducible(DType::int32, ReduceOp::sum, kCount, rank);
      Memory send((on_gpu & 1) != 0, input), recv((on_gpu & 2) != 0, Bytes(input.size()));
      tributary_request* request = nullptr;
      ASSERT_EQ(tributary_all_reduce(send.data(), recv.data(), kCount, TRIBUTARY_INT32, op, comm, &request),
                TRIBUTARY_OK)
          << last_error();
      EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
      EXPECT_EQ(difference(reduced(DType::int32, ReduceOp::sum, products), recv.content()), "") << on_gpu;
      EXPECT_EQ(difference(input, send.content()), "") << "the input has changed";
      ASSERT_EQ(tributary_reduce_scatter(send.data(), recv.data(), kCount / kRanks, TRIBUTARY_INT32, op, comm, nullptr),
                TRIBUTARY_OK)
          << last_error();
      const std::size_t bytes = kCount / kRanks * sizeof(std::int32_t);
      EXPECT_EQ(difference(
                    part(reduced(DType::int32, ReduceOp::sum, products), static_cast<std::size_t>(rank) * bytes, bytes),
                    part(recv.content(), 0, bytes)),
                "")
          << on_gpu;
    }
  });
}

TEST_F(Gpu, ValuesAreCountedInTheMemoryOfGpus) {
  constexpr std::size_t kCount = 500'000;
  for (const char* const check : {"count", "nan-fails"}) {
    run_ranks_without_end(
        2,
        [&](tributary_comm* comm, int rank) {
          std::vector<float> values(kCount, 1.0F);
          if (rank == 1) values[kCount - 1] = std::numeric_limits<float>::quiet_NaN();
          Bytes bytes(kCount * sizeof(float));
          std::memcpy(bytes.data(), values.data(), bytes.size());
          Memory memory(true, bytes);
          tributary_request* request = nullptr;
          ASSERT_EQ(tributary_all_reduce(memory.data(), memory.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm,
                                         &request),
                    TRIBUTARY_OK);
          tributary_request_details details{};
          details.struct_bytes = sizeof details;
          ASSERT_EQ(tributary_request_info(request, -1, &details), TRIBUTARY_OK) << last_error();
          const bool fails = std::string(check) == "nan-fails";
          EXPECT_EQ(tributary_wait(request, -1), fails ? TRIBUTARY_ERROR_ABORTED : TRIBUTARY_OK);
          if (fails) {
            EXPECT_THAT(last_error(), HasSubstr("the input of rank 1 to all_reduce of 500000 float32 (sum) has 1 NaN"));
          } else {
            EXPECT_EQ(details.input.nans, rank == 1 ? 1U : 0U);
            EXPECT_EQ(details.result.nans, 1U);
            std::memcpy(values.data(), memory.content().data(), bytes.size());
            EXPECT_EQ(values.front(), 2.0F);
          }
          tributary_comm_destroy(comm);
        },
        {.configure = [&](int, tributary_config& config) { config.check_values = check; }});
  }
}

TEST_F(Gpu, RegisteringSaysWhatTheMemoryIs) {
  run_ranks(1, [](tributary_comm* comm, int) {
    Memory gpu(true, Bytes(8192)), host(false, Bytes(8192));
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, gpu.data(), 8192, TRIBUTARY_MEM_CUDA, &mem), TRIBUTARY_OK) << last_error();
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_OK);
    EXPECT_EQ(tributary_mem_register(comm, gpu.data(), 8192, TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_THAT(last_error(), HasSubstr("ptr is memory of GPU 0"));
    EXPECT_EQ(tributary_mem_register(comm, host.data(), 8192, TRIBUTARY_MEM_CUDA, &mem), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_THAT(last_error(), HasSubstr("ptr is not GPU memory"));
    EXPECT_EQ(tributary_mem_register(comm, gpu.data() + 100, 8192, TRIBUTARY_MEM_CUDA, &mem),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_THAT(last_error(), HasSubstr("ends 8092 bytes after ptr"));
  });
}

}  // namespace
}  // namespace tributary::test

// The tables' answers about GPU memory, and their use of it, in a process that has a CUDA driver: a fake one
// (tests/fakes/cuda/fake_cuda.h).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/plugins/nccl/abi/collnet.h"
#include "client/plugins/nccl/abi/net.h"
#include "client/plugins/nccl/collective/collnet.h"
#include "client/plugins/nccl/p2p/net.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/system/nccl/granting_manager.h"

namespace tributary::nccl {

extern "C" {
extern abi::NetV12 ncclNetPlugin_v12;
extern abi::NetV11 ncclNetPlugin_v11;
extern abi::NetV10 ncclNetPlugin_v10;
extern abi::NetV9 ncclNetPlugin_v9;
extern abi::NetV8 ncclNetPlugin_v8;
extern abi::NetV7 ncclNetPlugin_v7;
extern abi::NetV6 ncclNetPlugin_v6;
extern abi::CollNetV12 ncclCollNetPlugin_v12;
extern abi::CollNetV11 ncclCollNetPlugin_v11;
extern abi::CollNetV10 ncclCollNetPlugin_v10;
extern abi::CollNetV9 ncclCollNetPlugin_v9;
extern abi::CollNetV8 ncclCollNetPlugin_v8;
extern abi::CollNetV7 ncclCollNetPlugin_v7;
extern abi::CollNetV6 ncclCollNetPlugin_v6;
}

namespace {

using enum abi::Result;
using Handle = std::array<std::byte, abi::kHandleBytes>;

void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): device memory has such addresses
}

template <class Table, class Properties>
void expect_host_memory_alone(const Table& table, Properties properties) {
  ASSERT_EQ(table.get_properties(0, &properties), success);
  EXPECT_EQ(properties.pointer_support, abi::kPointerHost) << "of " << sizeof properties << " bytes of properties";
}

// A driver in the process does not change the properties: see docs/nccl.md, "Memory".
TEST(Pointers, EveryTableOffersOnlyHostMemoryThoughThereIsADriver) {
  fake_cuda::reset();
  expect_host_memory_alone(ncclNetPlugin_v12, abi::PropertiesV12{});
  expect_host_memory_alone(ncclNetPlugin_v11, abi::PropertiesV11{});
  expect_host_memory_alone(ncclNetPlugin_v10, abi::PropertiesV10{});
  expect_host_memory_alone(ncclNetPlugin_v9, abi::PropertiesV9{});
  expect_host_memory_alone(ncclNetPlugin_v8, abi::PropertiesV8{});
  expect_host_memory_alone(ncclNetPlugin_v7, abi::PropertiesV7{});
  expect_host_memory_alone(ncclNetPlugin_v6, abi::PropertiesV6{});
  expect_host_memory_alone(ncclCollNetPlugin_v12, abi::PropertiesV12{});
  expect_host_memory_alone(ncclCollNetPlugin_v11, abi::PropertiesV11{});
  expect_host_memory_alone(ncclCollNetPlugin_v10, abi::PropertiesV10{});
  expect_host_memory_alone(ncclCollNetPlugin_v9, abi::PropertiesV9{});
  expect_host_memory_alone(ncclCollNetPlugin_v8, abi::PropertiesV8{});
  expect_host_memory_alone(ncclCollNetPlugin_v7, abi::PropertiesV7{});
  expect_host_memory_alone(ncclCollNetPlugin_v6, abi::PropertiesV6{});
  EXPECT_EQ(ncclNetPlugin_v12.register_dma_buf, nullptr) << "NCCL takes a function here as a promise of dma-buf";
}

TEST(Pointers, MessagesRefuseMemoryOfAGpu) {
  fake_cuda::reset();
  Handle handle{};
  void *listening = nullptr, *sending = nullptr, *receiving = nullptr;
  ASSERT_EQ(net::listen(nullptr, 0, handle.data(), &listening), success);
  while (sending == nullptr || receiving == nullptr) {
    if (sending == nullptr) {
      ASSERT_EQ(net::connect(nullptr, 0, handle.data(), &sending), success);
    }
    if (receiving == nullptr) {
      ASSERT_EQ(net::accept(listening, &receiving), success);
    }
  }
  const std::uint64_t device = fake_cuda::allocate(4096);
  for (void* const comm : {sending, receiving}) {
    void* memory = comm;
    EXPECT_EQ(net::register_memory(comm, pointer_to(device), 4096, abi::kPointerCuda, &memory), invalid_argument);
    EXPECT_EQ(memory, nullptr);
  }
  fake_cuda::free(device);
  EXPECT_EQ(net::close_send(sending), success);
  EXPECT_EQ(net::close_receive(receiving), success);
  EXPECT_EQ(net::close_listen(listening), success);
}

/// One of two ranks, which run on separate threads.
class Rank {
 public:
  void* listen() {
    EXPECT_EQ(collnet::listen(0, handle_.data(), &listening_), success);
    return handle_.data();
  }
  void connect(std::array<void*, 2> handles, int rank) {
    ASSERT_EQ(collnet::connect(handles.data(), 2, rank, listening_, &comm_), success);
    ASSERT_EQ(collnet::close_listen(listening_), success);
  }
  [[nodiscard]] void* comm() const { return comm_; }

 private:
  Handle handle_{};
  void* listening_ = nullptr;
  void* comm_ = nullptr;
};

void wait_for(void* request) {
  for (int done = 0; done == 0; std::this_thread::yield()) ASSERT_EQ(collnet::test(request, &done, nullptr), success);
}

/// Sums 1 + 2; both buffers are in GPU memory.
void reduce_on_the_gpu(void* comm, float value) {
  constexpr std::size_t count = 100'000, bytes = count * sizeof(float);
  const std::uint64_t device = fake_cuda::allocate(2 * bytes);
  std::vector<float> floats(count, value);
  fake_cuda::write(device, floats.data(), bytes);
  void* memory = nullptr;
  ASSERT_EQ(collnet::register_memory(comm, pointer_to(device), 2 * bytes, abi::kPointerCuda, &memory), success);
  void* request = nullptr;
  while (request == nullptr) {
    ASSERT_EQ(collnet::all_reduce(comm, pointer_to(device), pointer_to(device + bytes), count, abi::DataType::float32,
                                  abi::RedOp::sum, &request),
              success);
  }
  wait_for(request);
  fake_cuda::read(device + bytes, floats.data(), bytes);
  EXPECT_EQ(floats, std::vector<float>(count, 3.0F));
  EXPECT_EQ(collnet::deregister_memory(comm, memory), success);
  fake_cuda::free(device);
}

/// NCCL itself uses only memory that the properties offer; other callers of the tables may use all kinds that the
/// library supports.
TEST(Pointers, CollectivesTakeMemoryOfAGpuAndNoDmaBuf) {
  const GrantingManager manager;
  fake_cuda::reset();
  std::array<Rank, 2> ranks;
  const std::array<void*, 2> handles{ranks[0].listen(), ranks[1].listen()};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Rank& own = ranks[static_cast<std::size_t>(rank)];
      own.connect(handles, rank);
      if (own.comm() == nullptr) return;
      reduce_on_the_gpu(own.comm(), static_cast<float>(rank + 1));
      void* memory = &own;
      EXPECT_EQ(collnet::register_dma_buf(own.comm(), nullptr, 4096, abi::kPointerCuda, 0, 0, &memory), system_error);
      EXPECT_EQ(memory, nullptr);
      EXPECT_EQ(collnet::close_collective(own.comm()), success);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_cuda::counts().misuses, 0U) << fake_cuda::misuse();
  EXPECT_GT(fake_cuda::counts().copies, 0U);
}

}  // namespace
}  // namespace tributary::nccl

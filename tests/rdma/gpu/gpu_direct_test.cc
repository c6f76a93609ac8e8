// GPU memory over RDMA, end to end: ranks whose buffers are memory of the fake CUDA driver, which the processor cannot
// touch, and real aggregators. The RDMA device reads and writes this memory by stand-ins for the kernel's code
// (device_registration.h). Only the device, or a copy that the test counts, writes bytes of a result.
#include <errno.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/fakes/cuda/device_bytes.h"
#include "tests/rdma/gpu/device_registration.h"
#include "tests/system/chaos/workshop.h"
#include "tests/system/client/tensors.h"
#include "tributary/tributary.h"

namespace tributary::test {
namespace {

using fake_cuda::DeviceBytes;
using testing::HasSubstr;

constexpr std::uint32_t kRanks = 4;

class GpuDirect : public fake_cuda::WithDriver {
 protected:
  void SetUp() override {
    fake_cuda::WithDriver::SetUp();
    DeviceRegistration& all = device_registration();
    all.peer_memory = true;
    all.dma_bufs = false;
    all.by_peer_memory = all.by_dma_buf = all.dma_bufs_refused = 0;
    setenv("TRIBUTARY_GPUDIRECT", "peer-memory", 1);
    cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = 2, .levels = 1}, 1);
    token_file_ = cluster_->job_token_file();
    setenv("TRIBUTARY_TOKEN_FILE", token_file_.c_str(), 1);
  }
  /// Ranks as threads of this process, and the library's log.
  template <class Body>
  std::string run(Body body) {
    testing::internal::CaptureStderr();
    tributary_unique_id id{};
    EXPECT_EQ(tributary_get_unique_id(&id), TRIBUTARY_OK) << tributary_last_error(nullptr);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
        config.manager = cluster_->manager_url().c_str();
        config.host_id = cluster_->layout().host_of_rank[rank].c_str();
        config.tuning = "off";
        config.timeout_ms = 150'000;  // long enough for an emulated machine on a busy host
        tributary_comm* comm = nullptr;
        ASSERT_EQ(
            tributary_comm_init_rank_config(&comm, static_cast<int>(kRanks), &id, static_cast<int>(rank), &config),
            TRIBUTARY_OK)
            << tributary_last_error(nullptr);
        body(comm, rank);
        EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << tributary_last_error(nullptr);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return testing::internal::GetCapturedStderr();
  }
  static Bytes input(std::size_t count, std::uint32_t rank) {
    return reducible(DType::float32, ReduceOp::sum, count, static_cast<int>(rank));
  }
  static Bytes sum(std::size_t count) {
    std::vector<Bytes> inputs;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) inputs.push_back(input(count, rank));
    return reduced(DType::float32, ReduceOp::sum, inputs);
  }
  static std::uint64_t staged() { return fake_cuda::counts().bytes_staged; }

  chaos::Workshop workshop_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::string token_file_;
};

tributary_status all_reduce(const DeviceBytes& send, const DeviceBytes& recv, std::size_t count, tributary_comm* comm) {
  return tributary_all_reduce(send.pointer(), recv.pointer(), count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr);
}

/// Inputs and results of call_everything(). The test makes them before the ranks begin, because the ranks wait for each
/// other.
struct Everything {
  explicit Everything(std::size_t elements) : count(elements) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const int number = static_cast<int>(rank);
      inputs.push_back(reducible(DType::float32, ReduceOp::sum, count, number));
      parts.push_back(reducible(DType::float32, ReduceOp::sum, count * kRanks, number));
      all.insert(all.end(), inputs.back().begin(), inputs.back().end());
    }
    sum = reduced(DType::float32, ReduceOp::sum, inputs);
    sum_of_parts = reduced(DType::float32, ReduceOp::sum, parts);
  }
  std::size_t count;
  std::vector<Bytes> inputs, parts;  // by rank; each has parts
  Bytes all, sum, sum_of_parts;
};

/// Calls all-reduces in place and out of place, and the other collectives of trees. Checks all results, and that the
/// inputs are intact.
void call_everything(tributary_comm* comm, std::uint32_t rank, const Everything& with) {
  const std::size_t count = with.count;
  const Bytes& mine = with.inputs[rank];
  DeviceBytes send(mine), recv(Bytes(mine.size())), whole(Bytes(with.all.size())), many(with.parts[rank]);
  ASSERT_EQ(all_reduce(send, recv, count, comm), TRIBUTARY_OK) << tributary_last_error(comm);
  EXPECT_EQ(difference(with.sum, recv.content()), "") << "all_reduce";
  EXPECT_EQ(difference(mine, send.content()), "") << "all_reduce's input";
  recv.write(mine);
  ASSERT_EQ(all_reduce(recv, recv, count, comm), TRIBUTARY_OK) << tributary_last_error(comm);
  EXPECT_EQ(difference(with.sum, recv.content()), "") << "all_reduce in place";
  ASSERT_EQ(tributary_all_gather(send.pointer(), whole.pointer(), count, TRIBUTARY_FLOAT32, comm, nullptr),
            TRIBUTARY_OK);
  EXPECT_EQ(difference(with.all, whole.content()), "") << "all_gather";
  ASSERT_EQ(
      tributary_reduce_scatter(many.pointer(), recv.pointer(), count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
      TRIBUTARY_OK);
  const auto from = with.sum_of_parts.begin() + static_cast<std::ptrdiff_t>(rank * mine.size());
  EXPECT_EQ(difference(Bytes(from, from + static_cast<std::ptrdiff_t>(mine.size())), recv.content()), "")
      << "reduce_scatter";
  ASSERT_EQ(tributary_broadcast(send.pointer(), recv.pointer(), count, TRIBUTARY_FLOAT32, 2, comm, nullptr),
            TRIBUTARY_OK);
  EXPECT_EQ(difference(with.inputs[2], recv.content()), "") << "broadcast";
  ASSERT_EQ(tributary_reduce(send.pointer(), recv.pointer(), count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, 1, comm, nullptr),
            TRIBUTARY_OK);
  if (rank == 1) {
    EXPECT_EQ(difference(with.sum, recv.content()), "") << "reduce";
  }
}

TEST_F(GpuDirect, DataMoveBetweenGpuAndNetworkWithoutTheHost) {
  const Everything with(1 << 20);
  const std::string log = run([&](tributary_comm* comm, std::uint32_t rank) { call_everything(comm, rank, with); });
  EXPECT_EQ(staged(), 0U) << log;
  EXPECT_EQ(fake_cuda::counts().flushes, 0U);  // this GPU sees the writes of other devices
  EXPECT_GT(device_registration().by_peer_memory, 0U);
  EXPECT_EQ(device_registration().by_dma_buf + device_registration().dma_bufs_refused, 0U);
  EXPECT_THAT(log, HasSubstr("not as a dma-buf: TRIBUTARY_GPUDIRECT=peer-memory forbids it"));
  EXPECT_THAT(log, HasSubstr("reads and writes its memory by nvidia_peermem"));
}

// The last segment's few bytes travel in messages, which the driver copies.
TEST_F(GpuDirect, LetsTheDriverCopyNoMoreThanTheSmallEnds) {
  const Everything with((1 << 18) + 77);
  run([&](tributary_comm* comm, std::uint32_t rank) { call_everything(comm, rank, with); });
  EXPECT_LE(staged(), 4096U * 2 * kRanks * 6 * kRanks);
}

TEST_F(GpuDirect, IsFlushedIfTheGpuDoesNotOrderTheWritesOfOtherDevices) {
  fake_cuda::settings().write_ordering = 0;
  const Everything with(1 << 18);
  const std::string log = run([&](tributary_comm* comm, std::uint32_t rank) { call_everything(comm, rank, with); });
  EXPECT_EQ(staged(), 0U);
  EXPECT_GE(fake_cuda::counts().flushes, 6U * kRanks);
  EXPECT_THAT(log, HasSubstr("with a flush"));
}

TEST_F(GpuDirect, UsesADmaBufIfTheDeviceTakesOne) {
  setenv("TRIBUTARY_GPUDIRECT", "auto", 1);
  device_registration().dma_bufs = true;
  const Everything with(1 << 18);
  const std::string log = run([&](tributary_comm* comm, std::uint32_t rank) { call_everything(comm, rank, with); });
  EXPECT_EQ(staged(), 0U) << log;
  EXPECT_GT(device_registration().by_dma_buf, 0U);
  EXPECT_EQ(device_registration().by_peer_memory, 0U);
  EXPECT_THAT(log, HasSubstr("reads and writes its memory as a dma-buf"));
}

// Software RoCE refuses dma-bufs, and the kernel has no module: the log gives the reason once, and no call fails.
TEST_F(GpuDirect, StagesDataAndNamesTheReasonIfNoDirectWayIsOpen) {
  setenv("TRIBUTARY_GPUDIRECT", "auto", 1);
  const Everything with(1 << 18);
  const std::string log = run([&](tributary_comm* comm, std::uint32_t rank) {
    call_everything(comm, rank, with);
    call_everything(comm, rank, with);
  });
  EXPECT_GT(staged(), std::uint64_t{kRanks} << 20);
  EXPECT_EQ(device_registration().by_dma_buf + device_registration().by_peer_memory, 0U);
  EXPECT_THAT(log, HasSubstr("not by nvidia_peermem: the kernel module nvidia_peermem is not loaded"));
  EXPECT_THAT(log, HasSubstr("not as a dma-buf: ibv_reg_dmabuf_mr says: "));
  if (std::getenv("RDMA_VIRTUAL") != nullptr) {  // the virtual machine's device is known
    EXPECT_EQ(device_registration().refusal, EOPNOTSUPP);
  }
}

TEST_F(GpuDirect, TakesTheSecondWayWhereTheFirstIsRefused) {
  if (!std::filesystem::exists("/sys/module/nvidia_peermem")) GTEST_SKIP() << "no kernel module, and none shown";
  setenv("TRIBUTARY_GPUDIRECT", "auto", 1);
  const Everything with(1 << 18);
  const std::string log = run([&](tributary_comm* comm, std::uint32_t rank) { call_everything(comm, rank, with); });
  EXPECT_EQ(staged(), 0U) << log;
  EXPECT_GT(device_registration().by_peer_memory, 0U);
  EXPECT_GT(device_registration().dma_bufs_refused, 0U);
  EXPECT_THAT(log, HasSubstr("reads and writes its memory by nvidia_peermem; not as a dma-buf: ibv_reg_dmabuf_mr"));
}

TEST_F(GpuDirect, RegistersAnAllocationOnceForManyCalls) {
  constexpr std::size_t kCount = 1 << 18;
  std::atomic<std::uint64_t> before = 0;
  run([&](tributary_comm* comm, std::uint32_t rank) {
    const DeviceBytes memory(input(kCount, rank));
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, memory.pointer(), kCount * 4, TRIBUTARY_MEM_CUDA, &mem), TRIBUTARY_OK)
        << tributary_last_error(comm);
    for (int call = 0; call < 10; ++call)
      ASSERT_EQ(all_reduce(memory, memory, kCount, comm), TRIBUTARY_OK) << tributary_last_error(comm);
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_OK);
  });
  EXPECT_EQ(staged(), 0U);
}

// Uses new memory in each round, mostly at addresses that belonged to other memory before.
TEST_F(GpuDirect, DistinguishesFreedMemoryFromNewMemoryAtItsAddress) {
  constexpr std::size_t kCount = 1 << 16;
  run([&](tributary_comm* comm, std::uint32_t rank) {
    for (std::uint32_t call = 0; call < 12; ++call) {
      const DeviceBytes memory(input(kCount, (rank + call) % kRanks));
      ASSERT_EQ(all_reduce(memory, memory, kCount, comm), TRIBUTARY_OK) << tributary_last_error(comm);
      ASSERT_EQ(difference(sum(kCount), memory.content()), "") << call;
    }
  });
  EXPECT_EQ(staged(), 0U);
}

/// Maps host memory at these addresses, if they are still free.
class HostMemoryAt {
 public:
  HostMemoryAt(std::byte* where, std::size_t bytes)
      : bytes_(bytes),
        memory_(mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)) {}
  HostMemoryAt(const HostMemoryAt&) = delete;
  HostMemoryAt& operator=(const HostMemoryAt&) = delete;
  ~HostMemoryAt() {
    if (*this) munmap(memory_, bytes_);
  }
  [[nodiscard]] explicit operator bool() const { return memory_ != MAP_FAILED; }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

// The library does not learn when GPU memory is freed. It must not use the registrations of such memory for host memory
// at the same addresses, neither to send nor to receive results.
TEST_F(GpuDirect, DistinguishesHostMemoryFromEarlierGpuMemoryAtItsAddress) {
  constexpr std::size_t kDeviceBytes = 1 << 18;
  std::atomic<int> met{0};
  run([&](tributary_comm* comm, std::uint32_t rank) {
    for (const std::size_t count : {std::size_t{1} << 13, std::size_t{1} << 16, std::size_t{1} << 17}) {
      auto memory = std::make_unique<DeviceBytes>(input(kDeviceBytes, rank));
      ASSERT_EQ(all_reduce(*memory, *memory, kDeviceBytes, comm), TRIBUTARY_OK) << tributary_last_error(comm);
      std::byte* const there = memory->pointer();
      memory.reset();
      const HostMemoryAt host(there, kDeviceBytes * 4);
      met += host ? 1 : 0;
      Bytes elsewhere(host ? 0 : kDeviceBytes * 4);
      std::byte* const send = host ? host.data() : elsewhere.data();
      std::byte* const recv = send + kDeviceBytes * 2;
      const Bytes mine = input(count, rank);
      std::memcpy(send, mine.data(), mine.size());
      ASSERT_EQ(tributary_all_reduce(send, recv, count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr), TRIBUTARY_OK)
          << tributary_last_error(comm);
      EXPECT_EQ(difference(sum(count), Bytes(recv, recv + mine.size())), "") << count;
    }
  });
  EXPECT_EQ(staged(), 0U);
  if (met == 0) GTEST_SKIP() << "other memory was faster";
}

TEST_F(GpuDirect, AKilledAggregatorInMidOperationCostsNoBitAndNoError) {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  constexpr int kCalls = 24;
  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> failovers{0};
  std::thread killer([&] {
    while (calls.load() < 6 * static_cast<int>(kRanks)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t which = 0; which < cluster_->aggregators(); ++which) cluster_->kill(which);
  });
  run([&](tributary_comm* comm, std::uint32_t rank) {
    const Bytes mine = input(kCount, rank), expected = sum(kCount);
    for (int round = 0; round < kCalls; round += 2) {  // two calls at once, one in place and one not
      DeviceBytes send(mine), recv(Bytes(mine.size())), both(mine);
      tributary_request* requests[2] = {};
      ASSERT_EQ(tributary_all_reduce(send.pointer(), recv.pointer(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm,
                                     &requests[0]),
                TRIBUTARY_OK);
      ASSERT_EQ(tributary_all_reduce(both.pointer(), both.pointer(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm,
                                     &requests[1]),
                TRIBUTARY_OK);
      calls += 2;
      for (tributary_request* request : requests)
        ASSERT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << tributary_last_error(comm);
      ASSERT_EQ(difference(expected, recv.content()), "") << round;
      ASSERT_EQ(difference(mine, send.content()), "") << round;
      ASSERT_EQ(difference(expected, both.content()), "") << round << ", in place";
    }
    tributary_info info{};
    info.struct_bytes = sizeof info;
    EXPECT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK);
    failovers += info.failovers;
    EXPECT_GT(info.bytes_in_network, 0U);
    EXPECT_GT(info.bytes_fallback, 0U);
  });
  killer.join();
  EXPECT_EQ(failovers, std::uint64_t{kRanks});
  EXPECT_GT(staged(), 0U);
}

}  // namespace
}  // namespace tributary::test

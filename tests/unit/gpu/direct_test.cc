// Calls whose buffers stay in GPU memory: their registrations, and how long these last; the order of work in the GPU;
// and calls that leave GPU memory after they have begun. The transport records the requests.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <set>
#include <thread>

#include "client/gpu/stager.h"
#include "tests/unit/gpu/copies.h"
#include "tests/unit/gpu/no_transport.h"
#include "tributary/transport/device_memory.h"

namespace tributary::client::gpu {
namespace {

using test::Bytes;
using test::DeviceBytes;
using test::random_bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using transport::DeviceWay;

constexpr std::size_t kChunk = StagedCall::kChunkBytes;
constexpr std::size_t kBytes = 4 * kChunk + 4096;

/// A transport that only registers device memory.
class NotingTransport final : public test::NoTransport, public transport::TakesDeviceMemory {
 public:
  class Kept final : public transport::KeptMemory {
   public:
    Kept(NotingTransport& transport, std::span<const std::byte> memory) : transport_(transport), memory_(memory) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() override { transport_.kept.erase(transport_.kept.find(memory_.data())); }

   private:
    NotingTransport& transport_;
    std::span<const std::byte> memory_;
  };
  std::unique_ptr<transport::KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                            std::shared_ptr<transport::DeviceMemory> who) override {
    kept.insert(memory.data());
    owner = std::move(who);
    ++promises;
    return std::make_unique<Kept>(*this, memory);
  }

  std::multiset<const std::byte*> kept;
  std::uint64_t promises = 0;
  std::shared_ptr<transport::DeviceMemory> owner;
};

class DirectCalls : public test::WithFakeDriver {
 protected:
  void SetUp() override {
    test::WithFakeDriver::SetUp();
    make_stager({CopyRoute::dma_buf, {CopyRoute::dma_buf, CopyRoute::peer_memory}, false, ""});
  }
  void TearDown() override {
    transport.owner.reset();
    stager.reset();
    EXPECT_TRUE(transport.kept.empty());
    test::WithFakeDriver::TearDown();
  }
  void make_stager(PathChoice choice) {
    stager = std::make_unique<Stager>(
        Stager::Hooks{.call = {.arrived = [this] { ++arrivals; },
                               .failed =
                                   [this](const Error& why) {
                                     ++failures;
                                     failure = why.message;
                                   }},
                      .keep = nullptr,
                      .choose = [choice = std::move(choice)](CudaDriver&, int) { return choice; },
                      .tell = [this](const std::string& line) { lines.push_back(line); }});
  }
  std::shared_ptr<DirectCall> direct(const CallBuffers& buffers) {
    auto made = stager->direct(buffers);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : nullptr;
  }
  static CallBuffers between(const DeviceBytes& send, const DeviceBytes& recv, std::size_t bytes = kBytes) {
    return {.send = send.pointer(), .send_bytes = bytes, .recv = recv.pointer(), .recv_bytes = bytes};
  }
  static CallBuffers in_place(const DeviceBytes& memory) {
    CallBuffers buffers = between(memory, memory);
    buffers.in_place = true;
    return buffers;
  }
  static Status end(DirectCall& call, const Status& outcome = {}) {
    std::promise<Status> done;
    call.finish(outcome, [&](const Status& status) { done.set_value(status); });
    return done.get_future().get();
  }
  static GpuMemory& gpu_of(const DirectCall& call) { return dynamic_cast<GpuMemory&>(*call.device()); }
  static void wait_until_whole(const StagedMemory& staged) {
    while (!staged.input_whole()) std::this_thread::yield();
  }

  NotingTransport transport;
  std::atomic<int> arrivals = 0, failures = 0;
  std::string failure;
  std::vector<std::string> lines;
  std::unique_ptr<Stager> stager;
};

// ---- Calls that stay in GPU memory

TEST_F(DirectCalls, AreThoseOfOneGpuThatAreLargeEnough) {
  fake_cuda::settings().devices = 2;
  const DeviceBytes a(kBytes), b(kBytes), other(kBytes, 1);
  Bytes host(kBytes);
  EXPECT_NE(direct(between(a, b)), nullptr);
  // A broadcast has only one buffer, recv.
  EXPECT_NE(direct({.recv = a.pointer(), .recv_bytes = kBytes}), nullptr);
  EXPECT_EQ(direct(between(a, b, Stager::kDirectBytesMin - 1)), nullptr);
  EXPECT_EQ(direct(between(a, other)), nullptr);
  EXPECT_EQ(direct({.send = host.data(), .send_bytes = kBytes, .recv = a.pointer(), .recv_bytes = kBytes}), nullptr);
  EXPECT_EQ(direct({.send = host.data(), .send_bytes = kBytes, .recv = host.data(), .recv_bytes = kBytes}), nullptr);
  make_stager({});
  EXPECT_EQ(direct(between(a, b)), nullptr);  // every path is closed
}

TEST_F(DirectCalls, CopyNothingOfTheirOwn) {
  const DeviceBytes send(random_bytes(kBytes, 1)), recv(kBytes);
  const auto call = direct(between(send, recv));
  ASSERT_TRUE(call->keep(transport));
  EXPECT_TRUE(end(*call));
  EXPECT_EQ(fake_cuda::counts().copies_begun, 0U);
  EXPECT_EQ(fake_cuda::counts().host_blocks, 0);
  EXPECT_EQ(fake_cuda::counts().flushes, 0U);
  const Status failed = end(*call, fail(Errc::aborted, "enough"));
  EXPECT_EQ(failed.error().message, "enough");
}

// ---- Registrations

TEST_F(DirectCalls, KeepAnAllocationAsAWholeOnceUntilItIsForgotten) {
  const DeviceBytes memory(kBytes), other(kBytes);
  const CallBuffers part{.send = memory.pointer() + 4096,
                         .send_bytes = kChunk,
                         .recv = memory.pointer() + 2 * kChunk,
                         .recv_bytes = kChunk};
  auto first = direct(part);
  const auto ranges = first->keep(transport);
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 1U);
  EXPECT_EQ(ranges->front().data(), memory.pointer());
  EXPECT_EQ(ranges->front().size(), kBytes);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(direct(part)->keep(transport));
  EXPECT_EQ(transport.promises, 1U);
  EXPECT_EQ(direct(between(memory, other))->keep(transport)->size(), 2U);
  EXPECT_EQ(transport.promises, 2U);
  stager->forget({memory.pointer(), 100});
  EXPECT_EQ(transport.kept.size(), 2U);  // an operation still holds its registration
  first.reset();
  EXPECT_EQ(transport.kept.size(), 1U);
  const auto counts = gpu_of(*direct(part)).counts();
  EXPECT_EQ(counts.kept, 2U);
  EXPECT_EQ(counts.known, 22U);  // once for each buffer
}

TEST_F(DirectCalls, DistinguishFreedMemoryFromNewMemoryAtItsAddress) {
  std::uint64_t replaced = 0;
  for (int i = 0; i < 20; ++i) {
    const DeviceBytes memory(kBytes);
    const auto call = direct(in_place(memory));
    ASSERT_TRUE(call->keep(transport));
    replaced = gpu_of(*call).counts().replaced;
    EXPECT_EQ(transport.promises, static_cast<std::uint64_t>(i) + 1);
    EXPECT_EQ(transport.kept.count(memory.pointer()), 1U);
  }
  EXPECT_GT(replaced, 0U) << "the run did not reach the situation under test";
}

// Afterwards the caller may free the memory without telling the library.
TEST_F(DirectCalls, HoldTheirMemoryAsLongAsTheyLive) {
  const DeviceBytes memory(kBytes), other(kBytes);
  const auto held = [&](const DeviceBytes& one, std::size_t from, std::size_t bytes) {
    return transport.owner->holds({one.pointer() + from, bytes});
  };
  auto first = direct(in_place(memory)), second = direct(in_place(memory));
  ASSERT_TRUE(first->keep(transport));
  ASSERT_TRUE(second->keep(transport));
  EXPECT_TRUE(held(memory, 0, kBytes));
  EXPECT_TRUE(held(memory, 4096, 100));
  EXPECT_FALSE(held(memory, kBytes - 1, 2));
  EXPECT_FALSE(held(other, 0, 1));
  first.reset();
  stager->forget({memory.pointer(), kBytes});
  EXPECT_TRUE(held(memory, 0, kBytes));
  ASSERT_TRUE(second->materialize(false, {}));
  EXPECT_FALSE(held(memory, 0, 1));  // the network does not use this memory now
  EXPECT_TRUE(end(*second));
  auto block = gpu_of(*second).allocate(transport, kBytes);
  ASSERT_TRUE(block);
  const auto ours = (*block)->memory();
  EXPECT_TRUE(transport.owner->holds(ours));
  block->reset();
  EXPECT_FALSE(transport.owner->holds(ours));
}

TEST_F(DirectCalls, KeepABoundedNumberOfAllocations) {
  std::vector<std::unique_ptr<DeviceBytes>> memory;
  for (std::size_t i = 0; i < GpuMemory::kAllocationsMax + 10; ++i) {
    memory.push_back(std::make_unique<DeviceBytes>(Stager::kDirectBytesMin));
    const CallBuffers buffers{.recv = memory.back()->pointer(), .recv_bytes = Stager::kDirectBytesMin};
    ASSERT_TRUE(direct(buffers)->keep(transport));
    if (i == 100) {  // recently used, and so not among the first to be dropped
      ASSERT_TRUE(direct({.recv = memory[0]->pointer(), .recv_bytes = Stager::kDirectBytesMin})->keep(transport));
    }
  }
  EXPECT_EQ(transport.kept.size(), GpuMemory::kAllocationsMax);
  EXPECT_EQ(transport.kept.count(memory[0]->pointer()), 1U);
  EXPECT_EQ(transport.kept.count(memory[1]->pointer()), 0U);
}

TEST_F(DirectCalls, AreNotForMemoryOfTwoAllocationsOrATransportWithoutDevices) {
  const DeviceBytes memory(kBytes);
  const auto beyond =
      direct({.recv = memory.pointer() + kBytes - Stager::kDirectBytesMin, .recv_bytes = kBytes})->keep(transport);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().message, "the buffer lies in more than one allocation");
}

TEST_F(DirectCalls, HandOverADmaBufOfWholePages) {
  const DeviceBytes memory(kBytes);
  const auto call = direct(in_place(memory));
  ASSERT_TRUE(call->keep(transport));
  EXPECT_THAT(transport.owner->ways(), ElementsAre(DeviceWay::dma_buf, DeviceWay::peer_memory));
  const auto whole = transport.owner->dma_buf({memory.pointer(), kBytes});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->offset, 0U);
  EXPECT_NE(fcntl(whole->descriptor, F_GETFD), -1);
  close(whole->descriptor);
  const auto part = transport.owner->dma_buf({memory.pointer() + 5000, 100});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset, 5000U % static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  close(part->descriptor);
  fake_cuda::fail("cuMemGetHandleForAddressRange", fake_cuda::kNotSupported);
  const auto refused = transport.owner->dma_buf({memory.pointer(), kBytes});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("asking for a dma-buf of GPU 0 failed: CUDA_ERROR_NOT_SUPPORTED"));
}

TEST_F(DirectCalls, SayOnceForEachNetworkDeviceHowItReachesTheMemory) {
  const DeviceBytes memory(kBytes);
  ASSERT_TRUE(direct(in_place(memory))->keep(transport));
  for (int i = 0; i < 3; ++i) {
    transport.owner->reached("mlx5_0", DeviceWay::dma_buf, "");
    transport.owner->reached("mlx5_1", DeviceWay::peer_memory, "not as a dma-buf: it says no");
    transport.owner->reached("rxe0", std::nullopt, "not as a dma-buf: it says no; not by nvidia_peermem: nor here");
  }
  EXPECT_THAT(lines, ElementsAre("GPU 0: RDMA device mlx5_0 reads and writes its memory as a dma-buf",
                                 "GPU 0: RDMA device mlx5_1 reads and writes its memory by nvidia_peermem; not as a "
                                 "dma-buf: it says no",
                                 "GPU 0: RDMA device rxe0 does not reach its memory, so data go through pinned host "
                                 "memory; not as a dma-buf: it says no; not by nvidia_peermem: nor here"));
}

TEST_F(DirectCalls, AskNoMoreForMemoryThatWasRefused) {
  const DeviceBytes memory(random_bytes(kBytes, 5));
  const auto call = direct(in_place(memory));
  ASSERT_TRUE(call->keep(transport));
  ASSERT_TRUE(call->materialize(false, fail(Errc::unreachable, "the connection is not open")));
  EXPECT_TRUE(end(*call));
  const auto again = direct(in_place(memory));
  ASSERT_TRUE(again->keep(transport));  // the obstacle may go away by itself
  ASSERT_TRUE(again->materialize(false, fail(Errc::unsupported, "rxe0 does not reach it")));
  EXPECT_TRUE(end(*again));
  const auto refused = direct(in_place(memory))->keep(transport);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "rxe0 does not reach it");
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_EQ(direct(in_place(memory))->staged(), nullptr);
}

// ---- Copies in GPU memory

TEST_F(DirectCalls, TheDriverCopiesSmallPayloadsBothWaysAtOnce) {
  const Bytes content = random_bytes(kBytes, 2), small = random_bytes(999, 3);
  const DeviceBytes memory(content);
  ASSERT_TRUE(direct(in_place(memory))->keep(transport));
  Bytes read(999);
  ASSERT_TRUE(transport.owner->copy(read.data(), memory.pointer() + 77, read.size()));
  EXPECT_EQ(std::memcmp(read.data(), content.data() + 77, read.size()), 0);
  ASSERT_TRUE(transport.owner->copy(memory.pointer() + 77, small.data(), small.size()));
  EXPECT_EQ(std::memcmp(memory.content().data() + 77, small.data(), small.size()), 0);
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed);
  const Status failed = transport.owner->copy(read.data(), memory.pointer(), 1);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("copying a small payload of GPU 0 failed"));
}

TEST_F(DirectCalls, CopiesWithinTheGpuKeepTheirOrderAndEndBeforeTheCall) {
  const Bytes content = random_bytes(kBytes, 4);
  const DeviceBytes memory(content), other(kBytes), third(kBytes);
  const auto call = direct(in_place(memory));
  std::atomic<int> ended = 0;
  fake_cuda::hold();
  call->device()->copy(other.pointer(), memory.pointer(), kBytes, [&] { ++ended; });
  call->device()->copy(third.pointer(), other.pointer(), kBytes, [&] { ++ended; });
  std::promise<Status> done;
  call->finish({}, [&](const Status& status) {
    EXPECT_EQ(ended, 2);
    done.set_value(status);
  });
  EXPECT_EQ(ended, 0);
  fake_cuda::release();
  EXPECT_TRUE(done.get_future().get());
  EXPECT_EQ(third.content(), content);
  EXPECT_EQ(fake_cuda::counts().bytes_staged, 0U);
  EXPECT_EQ(gpu_of(*call).counts().bytes_within, 2 * kBytes);
}

TEST_F(DirectCalls, AFlushComesBeforeAReadOfDataThatTheNetworkWrote) {
  make_stager({CopyRoute::dma_buf, {CopyRoute::dma_buf}, true, ""});
  const DeviceBytes memory(kBytes), other(kBytes);
  const auto call = direct(in_place(memory));
  call->device()->copy(other.pointer(), memory.pointer(), kBytes, [] { EXPECT_GE(fake_cuda::counts().flushes, 1U); });
  EXPECT_TRUE(end(*call));
  EXPECT_EQ(fake_cuda::counts().flushes, 2U);  // end() flushed once more
  const auto left = direct(in_place(memory));
  const auto host = left->materialize(true, {});
  ASSERT_TRUE(host);
  wait_until_whole(*host->staged);
  EXPECT_EQ(fake_cuda::counts().flushes, 3U);
  EXPECT_TRUE(end(*left));
  fake_cuda::fail("cuFlushGPUDirectRDMAWrites", fake_cuda::kNotSupported);
  const auto unflushed = direct(in_place(memory));
  // The call must fail rather than return a result that may not have arrived.
  EXPECT_FALSE(end(*unflushed));
}

TEST_F(DirectCalls, ACopyThatFailsEndsTheCommunicatorAndEachCallWithAnError) {
  const DeviceBytes memory(kBytes), other(kBytes);
  const auto call = direct(in_place(memory));
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed);
  std::atomic<int> ended = 0;
  call->device()->copy(other.pointer(), memory.pointer(), kBytes, [&] { ++ended; });
  call->device()->copy(other.pointer(), memory.pointer(), kBytes, [&] { ++ended; });
  const Status status = end(*call);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("copying within GPU 0 failed: CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(failures, 1);
  EXPECT_THAT(failure, HasSubstr("copying within GPU 0"));
}

// ---- Calls that leave GPU memory

TEST_F(DirectCalls, CopyTheirInputAndTheResultsSoFarToTheHost) {
  for (const bool with_results : {false, true}) {
    const Bytes input = random_bytes(kBytes, 6), results = random_bytes(kBytes, 7), last = random_bytes(kBytes, 8);
    const DeviceBytes send(input), recv(results);
    const auto call = direct(between(send, recv));
    const auto host = call->materialize(with_results, {});
    ASSERT_TRUE(host);
    wait_until_whole(*host->staged);
    EXPECT_GT(arrivals, 0);
    EXPECT_EQ(std::memcmp(host->send, input.data(), kBytes), 0);
    if (with_results) {
      EXPECT_EQ(std::memcmp(host->recv, results.data(), kBytes), 0);
    }
    std::memcpy(host->recv, last.data(), kBytes);
    EXPECT_TRUE(end(*call));
    EXPECT_EQ(recv.content(), last);
    EXPECT_EQ(send.content(), input);
  }
  EXPECT_TRUE(lines.empty());  // the log is empty, because the path works
}

TEST_F(DirectCalls, CopyThemToTheHostAfterCopiesThatWereUnderWay) {
  const Bytes input = random_bytes(kBytes, 9), landed = random_bytes(kChunk, 10);
  const DeviceBytes memory(input), place(landed);
  const auto call = direct(in_place(memory));
  fake_cuda::hold();
  call->device()->copy(memory.pointer(), place.pointer(), kChunk, [] {});
  const auto host = call->materialize(true, {});
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->staged->input_whole());
  fake_cuda::release();
  wait_until_whole(*host->staged);
  EXPECT_EQ(host->send, host->recv);
  EXPECT_EQ(std::memcmp(host->recv, landed.data(), kChunk), 0);
  EXPECT_EQ(std::memcmp(host->recv + kChunk, input.data() + kChunk, kBytes - kChunk), 0);
  EXPECT_TRUE(end(*call));
}

// If the operation goes through a tree after all, other ranks' parts may land beside the input while it is still
// arriving.
TEST_F(DirectCalls, CopyOnlyTheirInputBeforeTheyBegin) {
  const Bytes before = random_bytes(kBytes, 13), landed = random_bytes(kChunk, 14);
  const DeviceBytes memory(before);
  const CallBuffers gather{.send = memory.pointer() + kChunk,
                           .send_bytes = kChunk,
                           .recv = memory.pointer(),
                           .recv_bytes = kBytes,
                           .in_place = true};
  const auto call = direct(gather);
  fake_cuda::hold();
  const auto host = call->materialize(false, {});
  ASSERT_TRUE(host);
  EXPECT_EQ(host->send, host->recv + kChunk);
  std::memcpy(host->recv, landed.data(), kChunk);
  std::memcpy(host->recv + 2 * kChunk, landed.data(), kChunk);
  fake_cuda::release();
  wait_until_whole(*host->staged);
  EXPECT_TRUE(end(*call));
  const Bytes after = memory.content();
  EXPECT_EQ(std::memcmp(after.data(), landed.data(), kChunk), 0);
  EXPECT_EQ(std::memcmp(after.data() + kChunk, before.data() + kChunk, kChunk), 0);
  EXPECT_EQ(std::memcmp(after.data() + 2 * kChunk, landed.data(), kChunk), 0);
}

TEST_F(DirectCalls, WaitForTheResultsOfACallWithoutInput) {
  const Bytes results = random_bytes(kBytes, 11);
  const DeviceBytes recv(results);
  const auto call = direct({.recv = recv.pointer(), .recv_bytes = kBytes});
  fake_cuda::hold();
  const auto host = call->materialize(true, {});
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->staged->input_whole());
  fake_cuda::release();
  wait_until_whole(*host->staged);
  EXPECT_EQ(std::memcmp(host->recv, results.data(), kBytes), 0);
  EXPECT_TRUE(end(*call));
}

TEST_F(DirectCalls, TakeOtherHostMemoryWhereNoMoreCanBePinned) {
  fake_cuda::settings().host_bytes_max = 0;
  const Bytes input = random_bytes(kBytes, 12);
  const DeviceBytes memory(input);
  const auto call = direct(in_place(memory));
  const auto host = call->materialize(true, {});
  ASSERT_TRUE(host) << host.error().message;
  wait_until_whole(*host->staged);
  EXPECT_EQ(std::memcmp(host->recv, input.data(), kBytes), 0);
  EXPECT_TRUE(end(*call));
  EXPECT_EQ(memory.content(), input);
}

TEST_F(DirectCalls, EndTheCommunicatorIfTheCopyToTheHostFails) {
  const DeviceBytes memory(kBytes);
  const auto call = direct(in_place(memory));
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed, 1);
  const auto host = call->materialize(true, {});
  ASSERT_TRUE(host);
  while (failures == 0) std::this_thread::yield();
  const Status status = end(*call, fail(Errc::aborted, "aborted"));
  ASSERT_FALSE(status);
  EXPECT_EQ(failures, 1);
  EXPECT_FALSE(host->staged->input_whole());
}

}  // namespace
}  // namespace tributary::client::gpu

// Calls whose buffers are in GPU memory.
#include "client/gpu/stager.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "client/gpu/memory_kind.h"
#include "tests/unit/gpu/copies.h"

namespace tributary::client::gpu {
namespace {

using test::Bytes;
using test::DeviceBytes;
using test::random_bytes;
using testing::HasSubstr;

constexpr std::size_t kChunk = StagedCall::kChunkBytes;

class StagedCalls : public test::WithFakeDriver {
 protected:
  void SetUp() override {
    test::WithFakeDriver::SetUp();
    stager = std::make_unique<Stager>(Stager::Hooks{.call = {.arrived = [this] { ++arrivals; },
                                                             .failed =
                                                                 [this](const Error& why) {
                                                                   ++failures;
                                                                   failure = why.message;
                                                                 }},
                                                    .keep = nullptr,
                                                    .choose = nullptr,
                                                    .tell = nullptr});
  }
  void TearDown() override {
    stager.reset();
    test::WithFakeDriver::TearDown();
  }
  std::shared_ptr<StagedCall> staged(const CallBuffers& buffers) {
    auto made = stager->stage(buffers);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : nullptr;
  }
  static CallBuffers between(const DeviceBytes& send, const DeviceBytes& recv, std::size_t bytes) {
    return {.send = send.pointer(), .send_bytes = bytes, .recv = recv.pointer(), .recv_bytes = bytes};
  }

  std::atomic<int> arrivals = 0, failures = 0;
  std::string failure;  // read it only after drain()
  std::unique_ptr<Stager> stager;
};

TEST_F(StagedCalls, HostMemoryNeedsNoStaging) {
  Bytes send(100), recv(100);
  EXPECT_EQ(staged({.send = send.data(), .send_bytes = 100, .recv = recv.data(), .recv_bytes = 100}), nullptr);
  EXPECT_EQ(staged({}), nullptr);
  EXPECT_EQ(fake_cuda::counts().contexts, 0);
}

TEST_F(StagedCalls, PinnedMemoryIsHostMemory) {
  auto context = Context::retain(*driver, 0);
  const auto pool = std::make_shared<PinnedPool>(*context, nullptr);
  const auto block = pool->take(100);
  EXPECT_FALSE(*device_of((*block)->data()));
}

TEST_F(StagedCalls, BringTheInputDownAndTheResultUp) {
  for (const std::size_t bytes : {std::size_t{1}, kChunk - 1, kChunk, kChunk + 1, 5 * kChunk + 17}) {
    const Bytes input = random_bytes(bytes, bytes), result = random_bytes(bytes, bytes + 1);
    const DeviceBytes send(input), recv(Bytes(bytes, std::byte{1}));
    const auto call = staged(between(send, recv, bytes));
    ASSERT_NE(call, nullptr);
    EXPECT_FALSE(call->input_whole());
    ASSERT_TRUE(call->download());
    EXPECT_TRUE(call->input_whole());
    ASSERT_EQ(std::memcmp(call->host().send, input.data(), bytes), 0) << bytes;
    std::memcpy(call->host().recv, result.data(), bytes);
    ASSERT_TRUE(call->finish(Status{}));
    EXPECT_EQ(recv.content(), result) << bytes;
    EXPECT_EQ(send.content(), input) << bytes;
  }
}

// At every moment of the pipeline, data reported as ready must be there.
TEST_F(StagedCalls, SayNoMoreIsReadyThanHasArrived) {
  constexpr std::size_t kBytes = 8 * kChunk;
  const Bytes input = random_bytes(kBytes, 3);
  const DeviceBytes send(input), recv(kBytes);
  const auto call = staged(between(send, recv, kBytes));
  fake_cuda::hold();
  call->begin();
  EXPECT_FALSE(call->input_ready(call->host().send + 1));
  EXPECT_TRUE(call->input_ready(call->host().send));
  fake_cuda::release();
  for (std::size_t end = 1000; end <= kBytes; end += 1000) {
    while (!call->input_ready(call->host().send + end)) std::this_thread::yield();
    ASSERT_EQ(std::memcmp(call->host().send + end - 1000, input.data() + end - 1000, 1000), 0) << end;
  }
  ASSERT_TRUE(call->finish(fail(Errc::aborted, "enough")).error().message == "enough");
  EXPECT_EQ(arrivals, 8);
}

TEST_F(StagedCalls, TakeResultsUpBeforeTheOperationEnds) {
  constexpr std::size_t kBytes = 3 * kChunk;
  const Bytes input = random_bytes(kBytes, 4), result = random_bytes(kBytes, 5);
  const DeviceBytes send(input), recv(kBytes);
  const auto call = staged(between(send, recv, kBytes));
  ASSERT_TRUE(call->download());
  const auto land = [&](std::size_t from, std::size_t bytes) {
    std::memcpy(call->host().recv + from, result.data() + from, bytes);
    call->result_landed({call->host().recv + from, bytes});
  };
  EXPECT_EQ(call->result_left(), kBytes);
  EXPECT_GT(call->copy_rate(), 0);
  const std::uint64_t before = fake_cuda::counts().copies;
  // A segment may cross a boundary, and land before an earlier segment.
  land(kChunk / 2, kChunk);
  EXPECT_EQ(fake_cuda::counts().copies_begun, before);
  land(0, kChunk / 2);
  while (call->result_left() != kBytes - kChunk) std::this_thread::yield();
  EXPECT_EQ(fake_cuda::counts().copies, before + 1);
  const Bytes so_far = recv.content();
  EXPECT_EQ(std::memcmp(so_far.data(), result.data(), kChunk), 0);
  land(kChunk * 3 / 2, kChunk * 3 / 2);
  std::promise<Status> done;
  call->finish(Status{}, [&](const Status& status) { done.set_value(status); });
  EXPECT_TRUE(done.get_future().get());
  EXPECT_EQ(recv.content(), result);
  EXPECT_EQ(fake_cuda::counts().copies - before, 3U);  // the stager copies no byte to the GPU twice
}

TEST_F(StagedCalls, AreDoneOnlyWhenNoCopyTouchesTheBuffers) {
  const DeviceBytes send(4 * kChunk), recv(4 * kChunk);
  const auto call = staged(between(send, recv, 4 * kChunk));
  fake_cuda::hold();
  call->begin();
  std::atomic<bool> done = false;
  call->finish(fail(Errc::peer_gone, "rank 3 is gone"), [&](const Status& status) {
    EXPECT_FALSE(status);
    done = true;
  });
  EXPECT_FALSE(done);
  fake_cuda::release();
  stager->drain();
  EXPECT_TRUE(done);
  EXPECT_EQ(fake_cuda::counts().copies, 4U);  // all four copies come from the GPU
}

TEST_F(StagedCalls, StayInPlace) {
  constexpr std::size_t kBytes = 2 * kChunk, kOffset = 4096;
  const Bytes input = random_bytes(kBytes, 6);
  const DeviceBytes memory(input);
  const auto call = staged({.send = memory.pointer() + kOffset,
                            .send_bytes = 1000,
                            .recv = memory.pointer(),
                            .recv_bytes = kBytes,
                            .in_place = true});
  EXPECT_EQ(call->host().send - call->host().recv, std::ptrdiff_t{kOffset});
  ASSERT_TRUE(call->download());
  EXPECT_EQ(std::memcmp(call->host().send, input.data() + kOffset, 1000), 0);
  ASSERT_TRUE(call->finish(fail(Errc::aborted, "enough")).error().code == Errc::aborted);
  EXPECT_EQ(memory.content(), input);  // a call that failed changes no input
}

TEST_F(StagedCalls, MayHaveOneSideInHostMemory) {
  const Bytes input = random_bytes(5000, 7), result = random_bytes(5000, 8);
  const DeviceBytes device(input);
  Bytes host(5000);
  const auto down = staged({.send = device.pointer(), .send_bytes = 5000, .recv = host.data(), .recv_bytes = 5000});
  EXPECT_EQ(down->host().recv, host.data());
  ASSERT_TRUE(down->download());
  EXPECT_EQ(std::memcmp(down->host().send, input.data(), 5000), 0);
  ASSERT_TRUE(down->finish(Status{}));
  const auto up = staged({.send = host.data(), .send_bytes = 5000, .recv = device.pointer(), .recv_bytes = 5000});
  EXPECT_TRUE(up->input_whole());
  std::memcpy(up->host().recv, result.data(), 5000);
  ASSERT_TRUE(up->finish(Status{}));
  EXPECT_EQ(device.content(), result);
}

TEST_F(StagedCalls, MayLieOnTwoGpus) {
  fake_cuda::settings().devices = 2;
  const Bytes input = random_bytes(5000, 9);
  const DeviceBytes send(input), recv(5000, 1);
  const auto call = staged(between(send, recv, 5000));
  EXPECT_EQ(fake_cuda::counts().contexts, 2);
  ASSERT_TRUE(call->download());
  std::memcpy(call->host().recv, call->host().send, 5000);
  ASSERT_TRUE(call->finish(Status{}));
  EXPECT_EQ(recv.content(), input);
}

TEST_F(StagedCalls, RunSideBySideWithTheirOwnBytes) {
  constexpr std::size_t kCalls = 12;
  std::vector<std::unique_ptr<DeviceBytes>> memory;
  std::vector<std::shared_ptr<StagedCall>> calls;
  std::vector<std::promise<Status>> done(kCalls);
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < kCalls; ++i) {
    inputs.push_back(random_bytes(kChunk / 3 * (i + 1), i));
    memory.push_back(std::make_unique<DeviceBytes>(inputs[i]));
    calls.push_back(staged({.send = memory[i]->pointer(),
                            .send_bytes = inputs[i].size(),
                            .recv = memory[i]->pointer(),
                            .recv_bytes = inputs[i].size(),
                            .in_place = true}));
    calls[i]->begin();
  }
  for (std::size_t i = 0; i < kCalls; ++i) {
    while (!calls[i]->input_whole()) std::this_thread::yield();
    for (std::size_t at = 0; at < inputs[i].size(); ++at) calls[i]->host().recv[at] ^= std::byte{0xFF};
    calls[i]->finish(Status{}, [&done, i](const Status& status) { done[i].set_value(status); });
  }
  for (std::size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(done[i].get_future().get());
    for (std::byte& byte : inputs[i]) byte ^= std::byte{0xFF};
    EXPECT_EQ(memory[i]->content(), inputs[i]) << i;
  }
}

// ---- Errors of the driver, at each step

TEST_F(StagedCalls, SayThatNothingMoreCanBePinned) {
  fake_cuda::settings().host_bytes_max = 1 << 20;
  const DeviceBytes send(8 * kChunk), recv(8 * kChunk);
  const auto made = stager->stage(between(send, recv, 8 * kChunk));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::exhausted);
  EXPECT_THAT(made.error().message, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(StagedCalls, AreRefusedWhereTheGpuCannotBeUsed) {
  const DeviceBytes send(100), recv(100);
  for (const char* call : {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuEventCreate", "cuMemHostAlloc"}) {
    fake_cuda::reset();
    fake_cuda::fail(call, fake_cuda::kOutOfMemory);
    const auto made = stager->stage(between(send, recv, 100));
    ASSERT_FALSE(made) << call;
    EXPECT_EQ(made.error().code, Errc::exhausted) << call;
  }
  fake_cuda::reset();
  // The error also does not make the next call fail.
  EXPECT_TRUE(stager->stage(between(send, recv, 100)));
}

TEST_F(StagedCalls, FailOnceWhenTheInputDoesNotComeDown) {
  const DeviceBytes send(6 * kChunk), recv(6 * kChunk);
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed, 2);
  const auto call = staged(between(send, recv, 6 * kChunk));
  const Status down = call->download();
  ASSERT_FALSE(down);
  EXPECT_EQ(failures, 1);
  EXPECT_THAT(failure, HasSubstr("copying a call's input from GPU 0 failed: CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_FALSE(call->input_whole());
  EXPECT_TRUE(call->input_ready(call->host().send + 2 * kChunk));
  EXPECT_FALSE(call->input_ready(call->host().send + 2 * kChunk + 1));
  // The operation that ends because of the error reports its cause.
  const Status end = call->finish(fail(Errc::aborted, "the communicator was aborted"));
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(StagedCalls, FailOnlyOnThisRankWhenTheResultDoesNotGoUp) {
  const DeviceBytes send(kChunk), recv(3 * kChunk);
  const auto call =
      staged({.send = send.pointer(), .send_bytes = kChunk, .recv = recv.pointer(), .recv_bytes = 3 * kChunk});
  ASSERT_TRUE(call->download());
  fake_cuda::fail("cuMemcpyAsync", fake_cuda::kLaunchFailed, 1);
  const Status end = call->finish(Status{});
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("copying a call's result to GPU 0 failed: CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_EQ(failures, 0);
}

TEST_F(StagedCalls, EndWhenTheContextBreaksInMidCopy) {
  const DeviceBytes send(6 * kChunk), recv(6 * kChunk);
  const auto call = staged(between(send, recv, 6 * kChunk));
  fake_cuda::break_context_in_copy(fake_cuda::kIllegalAddress, 3);
  call->begin();
  std::promise<Status> done;
  call->finish(fail(Errc::aborted, "aborted"), [&](const Status& status) { done.set_value(status); });
  EXPECT_FALSE(done.get_future().get());
  EXPECT_FALSE(call->input_whole());
}

TEST_F(StagedCalls, ARangeThatIsNotAllDeviceMemoryIsTheCallersError) {
  const DeviceBytes send(1000), recv(1000);
  const auto call = staged(between(send, recv, 2000));
  const Status down = call->download();
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, Errc::bad_argument);
}

}  // namespace
}  // namespace tributary::client::gpu

// Pinned memory and the copy lines.
#include "client/gpu/copy_line.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "client/gpu/pinned_pool.h"
#include "tests/unit/gpu/copies.h"

namespace tributary::client::gpu {
namespace {

using test::Bytes;
using test::DeviceBytes;
using test::random_bytes;
using testing::HasSubstr;

class Copies : public test::WithFakeDriver {
 protected:
  std::shared_ptr<Context> context() {
    auto made = Context::retain(*driver, 0);
    EXPECT_TRUE(made);
    return made ? *made : nullptr;
  }
  std::unique_ptr<CopyLine> line() {
    auto made = CopyLine::open(context(), "test");
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  static CopyLine::Copy copy(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                             std::function<void(const Status&)> done) {
    return {.to = to, .from = from, .bytes = bytes, .what = "copying", .done = std::move(done)};
  }
};

TEST(CopyRates, CountFromTheLaunchOrFromTheEndOfTheCopyBefore) {
  using namespace std::chrono_literals;
  const CopyRate::TimePoint start(1h);
  CopyRate rate;
  rate.note(1 << 10, start, start + 1s);
  EXPECT_EQ(rate.bytes_per_us(), 0) << "a short copy tells nothing";
  rate.note(2'000'000, start + 2s, start + 2s + 1ms);
  EXPECT_DOUBLE_EQ(rate.bytes_per_us(), 2000);
  rate.note(2'000'000, start + 2s, start + 2s + 1500us);  // it was launched behind the copy before
  EXPECT_DOUBLE_EQ(rate.bytes_per_us(), 2250) << "4000 with a weight of an eighth";
}

TEST_F(Copies, TellTheirRate) {
  const DeviceBytes from(Bytes(1 << 20)), to(Bytes(1 << 20));
  const auto down = line();
  EXPECT_EQ(down->bytes_per_us(), 0);
  down->submit(copy(to.address(), from.address(), 1 << 20, [](const Status& status) { EXPECT_TRUE(status); }));
  down->drain();
  EXPECT_GT(down->bytes_per_us(), 0);
}

TEST_F(Copies, ComeDownAndGoUpInOrder) {
  const Bytes content = random_bytes(100'000, 1);
  const DeviceBytes from(content), to(Bytes(content.size()));
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto block = pool->take(content.size());
  ASSERT_TRUE(block);
  const auto host = reinterpret_cast<std::uint64_t>((*block)->data());
  const auto down = line();
  constexpr std::size_t kPart = 10'000;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 10; ++i) {
    down->submit(copy(host + i * kPart, from.address() + i * kPart, kPart, [&, i](const Status& status) {
      EXPECT_TRUE(status);
      EXPECT_EQ(std::memcmp((*block)->data() + i * kPart, content.data() + i * kPart, kPart), 0) << i;
      order.push_back(i);
    }));
  }
  down->drain();
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  down->submit(copy(to.address(), host, content.size(), [](const Status& status) { EXPECT_TRUE(status); }));
  down->drain();
  EXPECT_EQ(to.content(), content);
}

TEST_F(Copies, KeepTheStreamBusyWhileTheFirstHasNotEnded) {
  const DeviceBytes from(4096);
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto block = pool->take(4096);
  const auto down = line();
  const auto submit = [&](std::function<void(const Status&)> done) {
    down->submit(copy(reinterpret_cast<std::uint64_t>((*block)->data()), from.address(), 512, std::move(done)));
  };
  // The end of one copy keeps the line until all other copies wait: else it might wait for the first of them before it
  // sees the others.
  std::atomic<bool> kept = false, others_wait = false;
  submit([&](const Status&) {
    kept = true;
    others_wait.wait(false);
  });
  while (!kept) std::this_thread::yield();
  fake_cuda::hold();
  std::atomic<int> ended = 0;
  for (int i = 0; i < 8; ++i) submit([&](const Status&) { ++ended; });
  others_wait = true;
  others_wait.notify_one();
  while (fake_cuda::counts().copies_begun < 5) std::this_thread::yield();
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(fake_cuda::counts().copies_begun, 5U);
  fake_cuda::release();
  down->drain();
  EXPECT_EQ(ended, 8);
}

TEST_F(Copies, AllEndBeforeTheLineGoes) {
  const DeviceBytes from(4096);
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto block = pool->take(4096);
  int ended = 0;
  {
    const auto down = line();
    for (int i = 0; i < 20; ++i) {
      down->submit(copy(reinterpret_cast<std::uint64_t>((*block)->data()), from.address(), 4096,
                        [&](const Status& status) { ended += status ? 1 : 0; }));
    }
  }
  EXPECT_EQ(ended, 20);
}

// The caller gets the error in order, and copies that began before it succeed.
TEST_F(Copies, AnErrorNamesTheCallThatFailed) {
  for (const char* call : {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery"}) {
    fake_cuda::reset();
    const DeviceBytes from(4096);
    const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
    const auto block = pool->take(4096);
    const auto down = line();
    fake_cuda::fail(call, fake_cuda::kLaunchFailed, 2);
    std::vector<Status> outcomes;
    for (int i = 0; i < 4; ++i) {
      down->submit(copy(reinterpret_cast<std::uint64_t>((*block)->data()), from.address(), 4096,
                        [&](const Status& status) { outcomes.push_back(status); }));
    }
    down->drain();
    ASSERT_EQ(outcomes.size(), 4U) << call;
    EXPECT_FALSE(outcomes.back()) << call;
    if (outcomes.back()) continue;
    EXPECT_THAT(outcomes.back().error().message, HasSubstr("copying failed: CUDA_ERROR_LAUNCH_FAILED")) << call;
  }
}

TEST_F(Copies, EndWithTheErrorOfABrokenContext) {
  const DeviceBytes from(4096);
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto block = pool->take(4096);
  const auto down = line();
  fake_cuda::break_context_in_copy(fake_cuda::kIllegalAddress, 1);
  std::vector<Status> outcomes;
  for (int i = 0; i < 6; ++i) {
    down->submit(copy(reinterpret_cast<std::uint64_t>((*block)->data()), from.address(), 4096,
                      [&](const Status& status) { outcomes.push_back(status); }));
  }
  down->drain();
  ASSERT_EQ(outcomes.size(), 6U);
  for (int i = 1; i < 6; ++i) {
    ASSERT_FALSE(outcomes[static_cast<std::size_t>(i)]) << i;
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)].error().code, Errc::io);
  }
}

TEST_F(Copies, LeaveNothingWhenALineCannotBeMade) {
  for (const char* call : {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuEventCreate"}) {
    fake_cuda::reset();
    fake_cuda::fail(call, fake_cuda::kOutOfMemory, std::string(call) == "cuEventCreate" ? 2 : 0);
    auto made = Context::retain(*driver, 0);
    if (made) {
      const auto opened = CopyLine::open(*made, "test");
      ASSERT_FALSE(opened) << call;
      EXPECT_EQ(opened.error().code, Errc::exhausted) << call;
    } else {
      EXPECT_THAT(made.error().message, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    }
  }
}

TEST_F(Copies, ABlockIsUsedAgain) {
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const std::byte* first = nullptr;
  {
    const auto block = pool->take(1'000'000);
    ASSERT_TRUE(block);
    first = (*block)->data();
  }
  const auto again = pool->take(1'048'576);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->data(), first);
  EXPECT_EQ(fake_cuda::counts().host_blocks, 1);
}

TEST_F(Copies, IdleBlocksOfManySmallCallsAreBounded) {
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  for (std::size_t i = 1; i <= 10; ++i) (void)*pool->take(i * (std::size_t{16} << 20));  // no two of the same size
  EXPECT_LE(pool->idle_bytes(), PinnedPool::kIdleBytes);
}

TEST_F(Copies, LargeCallsUseTheirBlocksAgain) {
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto call = [&] {
    std::vector<std::shared_ptr<PinnedPool::Block>> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(*pool->take(std::size_t{48} << 20));
  };
  call();
  EXPECT_EQ(fake_cuda::counts().host_blocks, 10);
  const std::int64_t pinned = fake_cuda::counts().host_blocks_made;
  for (int i = 0; i < 20; ++i) call();
  EXPECT_EQ(fake_cuda::counts().host_blocks_made, pinned);
}

TEST_F(Copies, ALargeCallOfLongAgoHoldsNoMemory) {
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  {
    std::vector<std::shared_ptr<PinnedPool::Block>> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(*pool->take(std::size_t{48} << 20));
  }
  EXPECT_GT(pool->idle_bytes(), PinnedPool::kIdleBytes);
  for (std::size_t i = 0; i < 2 * PinnedPool::kRecentTakes + 1; ++i) (void)*pool->take(1);
  EXPECT_LE(pool->idle_bytes(), PinnedPool::kIdleBytes);
}

TEST_F(Copies, SayHowMuchCouldNotBePinned) {
  fake_cuda::settings().host_bytes_max = 1 << 20;
  const auto pool = std::make_shared<PinnedPool>(context(), nullptr);
  const auto block = pool->take(std::size_t{2} << 20);
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().code, Errc::exhausted);
  EXPECT_THAT(block.error().message, HasSubstr("pinning 2097152 bytes"));
}

}  // namespace
}  // namespace tributary::client::gpu

// A lane's places in device memory. A place is free only after the copy out of it has ended; the end wakes a thread
// that waits for a place. Retained data keep their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "client/collectives/in_network/direct_lane.h"
#include "tests/unit/gpu/no_transport.h"

namespace tributary::client {
namespace {

constexpr std::uint32_t kWindow = 4, kSegmentBytes = 64;

/// A stand-in for the GPU's copies, which happen only when the test says so.
class Device final : public DirectDevice {
 public:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    std::function<void()> done;
  };
  class Block final : public DirectBlock {
   public:
    explicit Block(std::size_t bytes) : bytes_(bytes) {}
    std::span<std::byte> memory() const noexcept override { return bytes_; }

   private:
    mutable std::vector<std::byte> bytes_;
  };
  Result<std::shared_ptr<DirectBlock>> allocate(transport::Transport&, std::size_t bytes) override {
    return std::make_shared<Block>(bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) override {
    copies.push_back({to, from, bytes, std::move(done)});
  }
  void wake() override { ++wakes; }
  void do_one() {
    const Copy copy = std::move(copies.front());
    copies.pop_front();
    std::copy_n(copy.from, copy.bytes, copy.to);
    copy.done();
  }
  std::deque<Copy> copies;
  int wakes = 0;
};

class DirectLanes : public testing::Test {
 protected:
  gpu::test::NoTransport transport;
  std::shared_ptr<Device> device = std::make_shared<Device>();
  std::unique_ptr<DirectLane> lane = DirectLane::make(transport, device, kWindow, kSegmentBytes).value();
  std::vector<std::byte> memory = std::vector<std::byte>(kSegmentBytes);
};

TEST_F(DirectLanes, APlaceIsFreeAgainWhenItsResultWasCopiedAndAWaitingLaneIsWokenOnce) {
  for (std::uint64_t sequence = 0; sequence < kWindow; ++sequence) EXPECT_TRUE(lane->place_free(sequence));
  lane->bring(1, memory.data(), kSegmentBytes);
  EXPECT_TRUE(lane->place_free(kWindow));
  EXPECT_FALSE(lane->place_free(kWindow + 1));
  EXPECT_EQ(device->wakes, 0);
  lane->place(1)[0] = std::byte{7};
  device->do_one();
  EXPECT_EQ(memory[0], std::byte{7});
  EXPECT_EQ(device->wakes, 1);
  EXPECT_TRUE(lane->place_free(kWindow + 1));
  lane->bring(2, memory.data(), kSegmentBytes);
  device->do_one();
  EXPECT_EQ(device->wakes, 1) << "no thread waited";
}

TEST_F(DirectLanes, CopiesThatOutliveTheLaneHaveTheirMemoryAndTheirEnd) {
  lane->bring(0, memory.data(), kSegmentBytes);
  EXPECT_FALSE(lane->place_free(0));
  lane->place(0)[0] = std::byte{9};
  lane.reset();
  device->do_one();
  EXPECT_EQ(memory[0], std::byte{9});
  EXPECT_EQ(device->wakes, 1);
}

TEST_F(DirectLanes, RetainedDataLieApartFromResultsAndComeDownInTheirOrder) {
  std::vector<std::byte> host(kSegmentBytes);
  memory[0] = std::byte{1};
  lane->place(0)[0] = lane->place(kWindow - 1)[0] = std::byte{2};
  lane->retain(0, memory.data(), kSegmentBytes);
  int ended = 0;
  lane->bring_down(0, host.data(), kSegmentBytes, [&] { ++ended; });
  ASSERT_EQ(device->copies.size(), 2U);
  EXPECT_GE(device->copies[0].to, lane->places().data() + lane->places().size());
  device->do_one();
  EXPECT_EQ(device->wakes, 0);
  device->do_one();
  EXPECT_EQ(host[0], std::byte{1});
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(device->wakes, 1);
}

}  // namespace
}  // namespace tributary::client

#include "transport/ethernet/neighbour_table.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/ethernet/frames.h"

namespace tributary::transport::ethernet::test {
namespace {

using namespace std::chrono_literals;

class Neighbours : public ::testing::Test {
 protected:
  bool knows(const IpAddress& address) {
    MacAddress mac;
    return table.find(address, mac);
  }
  std::vector<NeighbourProbe> due() {
    std::vector<NeighbourProbe> probes(64);
    probes.resize(table.due(now, probes));
    return probes;
  }
  void answer(const IpAddress& address, const MacAddress& mac = kTheirMac) {
    table.heard(address, mac, {.is_answer = true}, now);
  }

  TimePoint now{1h};
  NeighbourTable table{{.buckets = 1}};
  const IpAddress peer = ip("10.0.0.2");
};

TEST_F(Neighbours, AreAskedForAndKnownOnceTheyAnswer) {
  EXPECT_FALSE(knows(peer));
  table.want(peer, now);
  const auto probes = due();
  ASSERT_EQ(probes.size(), 1U);
  EXPECT_EQ(probes[0].ip, peer);
  EXPECT_FALSE(probes[0].at) << "the neighbour's station is not known yet";
  EXPECT_FALSE(knows(peer));
  const std::uint32_t before = table.generation();
  answer(peer);
  EXPECT_NE(table.generation(), before);
  MacAddress mac;
  EXPECT_TRUE(table.find(peer, mac));
  EXPECT_EQ(mac, kTheirMac);
}

TEST_F(Neighbours, AreAskedThreeTimesASecondApartAndThenGivenUp) {
  table.want(peer, now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(due().size(), 1U);
    EXPECT_EQ(due().size(), 0U) << "the table asks only once a second";
    now += 1s;
  }
  EXPECT_EQ(due().size(), 0U);
  EXPECT_EQ(table.counts().failed, 1U);
  EXPECT_EQ(table.counts().entries, 0U);
}

TEST_F(Neighbours, UnrequestedAnswersTeachNoNeighbour) {
  answer(peer);
  table.heard(peer, kTheirMac, {}, now);
  EXPECT_FALSE(knows(peer));
  EXPECT_EQ(table.counts().entries, 0U);
}

TEST_F(Neighbours, NeighboursThatAskForThisHostAreLearnedAndAskedOnceTheyAreUsed) {
  table.heard(peer, kTheirMac, {.asks_for_us = true}, now);
  EXPECT_EQ(due().size(), 0U) << "a neighbour that is not used need not be asked";
  EXPECT_TRUE(knows(peer));
  const auto probes = due();
  ASSERT_EQ(probes.size(), 1U);
  EXPECT_EQ(probes[0].at, kTheirMac) << "the station itself is asked, not all";
  EXPECT_TRUE(knows(peer)) << "the neighbour stays known meanwhile";
}

TEST_F(Neighbours, InUseAreConfirmedEveryHalfMinuteAndGoWhenTheyAreSilent) {
  table.want(peer, now);
  answer(peer);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(knows(peer));
    now += 31s;
    EXPECT_EQ(due().size(), 0U) << "a stale neighbour is asked at its next use";
    EXPECT_TRUE(knows(peer));
    EXPECT_EQ(due().size(), 1U);
    answer(peer);
  }
  now += 31s;
  EXPECT_TRUE(knows(peer));
  for (int i = 0; i < 6; ++i) {
    static_cast<void>(knows(peer));
    static_cast<void>(due());
    now += 1s;
  }
  EXPECT_FALSE(knows(peer));
}

TEST_F(Neighbours, UnusedNeighboursAreForgotten) {
  table.heard(peer, kTheirMac, {.asks_for_us = true}, now);
  now += 11min;
  EXPECT_EQ(due().size(), 0U);
  EXPECT_FALSE(knows(peer));
  EXPECT_EQ(table.counts().entries, 0U);
}

TEST_F(Neighbours, MayMoveToAnotherStationIfTheyAreNotFixed) {
  table.want(peer, now);
  answer(peer);
  const MacAddress other{{2, 0, 0, 0, 0, 9}};
  table.heard(peer, other, {.may_replace = false}, now);
  MacAddress mac;
  EXPECT_TRUE(table.find(peer, mac));
  EXPECT_EQ(mac, kTheirMac);
  table.heard(peer, other, {}, now);
  EXPECT_TRUE(table.find(peer, mac));
  EXPECT_EQ(mac, other);
  EXPECT_EQ(table.counts().moved, 1U);
}

TEST_F(Neighbours, InUseAreNotDisplacedByAFloodOfStrangers) {
  for (std::uint8_t i = 0; i < 8; ++i) {
    const IpAddress ours = mapped({10, 0, 1, i});
    table.want(ours, now);
    answer(ours);
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto low = static_cast<std::uint8_t>(i);
    table.heard(mapped({10, 0, static_cast<std::uint8_t>(i >> 8U | 0x80U), low}), kTheirMac, {.asks_for_us = true},
                now);
  }
  for (std::uint8_t i = 0; i < 8; ++i) EXPECT_TRUE(knows(mapped({10, 0, 1, i})));
  EXPECT_EQ(table.counts().refused_full, 1000U);
  EXPECT_EQ(table.counts().entries, 8U);
}

TEST_F(Neighbours, DisplaceStrangersFirstAndThenThoseWhoseUseIsLongestAgo) {
  table.heard(peer, kTheirMac, {.asks_for_us = true}, now);
  for (std::uint8_t i = 0; i < 8; ++i) {
    const IpAddress ours = mapped({10, 0, 1, i});
    table.want(ours, now + i * 1s);
    table.heard(ours, kTheirMac, {.is_answer = true}, now + i * 1s);
  }
  EXPECT_FALSE(knows(peer));
  table.want(mapped({10, 0, 1, 8}), now + 8s);
  EXPECT_FALSE(knows(mapped({10, 0, 1, 0})));
  EXPECT_TRUE(knows(mapped({10, 0, 1, 1})));
}

// The two stations of the address differ in every byte, so the test detects a torn read.
TEST_F(Neighbours, AreReadWholeWhileTheyMove) {
  const MacAddress one{{2, 2, 2, 2, 2, 2}};
  const MacAddress two{{4, 4, 4, 4, 4, 4}};
  table.want(peer, now);
  answer(peer, one);
  std::atomic<bool> over{false};
  std::jthread reader([&] {
    while (!over.load()) {
      MacAddress mac;
      if (!table.find(peer, mac)) continue;
      EXPECT_TRUE(mac == one || mac == two) << to_string(mac);
    }
  });
  for (int i = 0; i < 20000; ++i) answer(peer, i % 2 == 0 ? two : one);
  over.store(true);
}

}  // namespace
}  // namespace tributary::transport::ethernet::test

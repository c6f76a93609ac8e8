// The map of ranks to hosts.
#include "client/collectives/hosts/host_map.h"

#include <gmock/gmock.h>

namespace tributary::client::hosts {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

TEST(HostMap, RanksOfOneTokenAndOnePlaceAreTogether) {
  const HostMap map = find_hosts(Texts{"x", "y", "x", "x", "y"}, Texts{"a", "b", "a", "a", "b"});
  EXPECT_EQ(map.hosts(), 2U);
  EXPECT_THAT(map.by_rank(), ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(map.members(0), ElementsAre(0, 2, 3));
  EXPECT_THAT(map.members(1), ElementsAre(1, 4));
  EXPECT_EQ(map.leader(1), 1U);
  EXPECT_TRUE(map.leads(0));
  EXPECT_FALSE(map.leads(4));
  EXPECT_EQ(map.place_of(3), 2U);
  EXPECT_TRUE(map.worth_while());
}

TEST(HostMap, OneMachineMayPlayTwoHostsAndTwoMachinesMayHaveOneName) {
  EXPECT_THAT(find_hosts(Texts{"x", "x", "x"}, Texts{"a", "a", "b"}).by_rank(), ElementsAre(0, 0, 1));
  EXPECT_THAT(find_hosts(Texts{"x", "y", "x"}, Texts{"a", "a", "a"}).by_rank(), ElementsAre(0, 1, 0));
}

TEST(HostMap, ARankThatCannotShareMemoryIsAlone) {
  const HostMap map = find_hosts(Texts{"", "x", "", "x"}, Texts{"a", "a", "a", "a"});
  EXPECT_THAT(map.by_rank(), ElementsAre(0, 1, 2, 1));
  EXPECT_TRUE(map.alone(0));
  EXPECT_TRUE(map.alone(2));
  EXPECT_FALSE(map.alone(3));
}

TEST(HostMap, IsUselessOnOneHostOrIfEachRankHasAHostOfItsOwn) {
  EXPECT_FALSE(find_hosts(Texts{"x", "x"}, Texts{"a", "a"}).worth_while());
  EXPECT_FALSE(find_hosts(Texts{"x", "x"}, Texts{"a", "b"}).worth_while());
  EXPECT_FALSE(find_hosts(Texts{"", ""}, Texts{"a", "a"}).worth_while());
}

TEST(HostMap, IsShortIfRanksWereDealtOutByARule) {
  const std::vector<std::pair<std::vector<std::uint32_t>, std::string>> maps{
      {{0, 0, 1, 1, 2}, "each 2"}, {{0, 1, 2, 0, 1}, "turns 3"}, {{0, 0, 0, 1, 1, 0}, "runs 0x3 1x2 0x1"}};
  for (const auto& [by_rank, text] : maps) {
    EXPECT_EQ(encode(HostMap(by_rank)), text);
    const auto again = decode_hosts(text, static_cast<std::uint32_t>(by_rank.size()));
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(again->by_rank(), by_rank);
  }
  for (const char* wrong : {"", "each 0", "each 2 ", "turns 0", "runs", "runs 0x4", "runs 0x6", "runs 1x5",
                            "runs 0x4294967295", "runs 0x2 2x3", "runs 0x2,1x3", "runs -1x5", "hosts 3"})
    EXPECT_FALSE(decode_hosts(wrong, 5)) << wrong;
}

TEST(HostMap, TheMapThatRank0SendsIsChecked) {
  EXPECT_TRUE(checked_hosts({0, 1, 0}, 3));
  EXPECT_FALSE(checked_hosts({0, 2, 1}, 3));
  EXPECT_FALSE(checked_hosts({1, 0}, 2));
  EXPECT_FALSE(checked_hosts({0, 0}, 3));
}

}  // namespace
}  // namespace tributary::client::hosts

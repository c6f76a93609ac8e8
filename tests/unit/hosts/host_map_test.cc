// Who is with whom.
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

TEST(HostMap, WhoCannotShareMemoryIsAlone) {
  const HostMap map = find_hosts(Texts{"", "x", "", "x"}, Texts{"a", "a", "a", "a"});
  EXPECT_THAT(map.by_rank(), ElementsAre(0, 1, 2, 1));
  EXPECT_TRUE(map.alone(0));
  EXPECT_TRUE(map.alone(2));
  EXPECT_FALSE(map.alone(3));
}

TEST(HostMap, IsOfNoUseOnOneHostNorWhereAllAreAlone) {
  EXPECT_FALSE(find_hosts(Texts{"x", "x"}, Texts{"a", "a"}).worth_while());
  EXPECT_FALSE(find_hosts(Texts{"x", "x"}, Texts{"a", "b"}).worth_while());
  EXPECT_FALSE(find_hosts(Texts{"", ""}, Texts{"a", "a"}).worth_while());
}

TEST(HostMap, WhatRank0SaysIsChecked) {
  EXPECT_TRUE(checked_hosts({0, 1, 0}, 3));
  EXPECT_FALSE(checked_hosts({0, 2, 1}, 3));
  EXPECT_FALSE(checked_hosts({1, 0}, 2));
  EXPECT_FALSE(checked_hosts({0, 0}, 3));
}

}  // namespace
}  // namespace tributary::client::hosts

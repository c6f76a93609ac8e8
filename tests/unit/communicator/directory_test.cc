// A rank knows few other ranks, and asks for the rest in larger and larger pieces.
#include "client/control/directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace tributary::client {
namespace {

using Ranks = std::vector<std::uint32_t>;

Member member(std::uint32_t rank) {
  return {.at = {"10.0.0." + std::to_string(rank % 250), static_cast<std::uint16_t>(40000 + rank % 1000)},
          .second_port = 7,
          .host_id = "node-" + std::to_string(rank)};
}

TEST(Directory, TellsOthersWhatItKnows) {
  Directory root(0, 100), rank(50, 100);
  for (std::uint32_t r = 0; r < 100; ++r) root.learn(r, member(r));
  EXPECT_EQ(learn_members(rank, members_to_json(root, {3, 7})), (Ranks{3, 7}));
  ASSERT_NE(rank.find(7), nullptr);
  EXPECT_EQ(rank.find(7)->at, member(7).at);
  EXPECT_EQ(rank.find(7)->second(), (Endpoint{"10.0.0.7", 7}));
  EXPECT_EQ(rank.on_host(7), " on host node-7");
  EXPECT_EQ(rank.find(8), nullptr);
  EXPECT_EQ(rank.on_host(8), "");
  EXPECT_EQ(root.host_ids()[99], "node-99");
}

TEST(Directory, KnowsARailOnlyIfAllMembersNameIt) {
  Directory root(0, 3);
  EXPECT_EQ(root.common_rail(), "");
  for (std::uint32_t r = 0; r < 3; ++r) {
    Member it = member(r);
    it.rail = "rail-2";
    root.learn(r, it);
  }
  EXPECT_EQ(root.common_rail(), "rail-2");
  for (const char* other : {"rail-1", ""}) {
    Member it = member(1);
    it.rail = other;
    root.learn(1, it);
    EXPECT_EQ(root.common_rail(), "") << "'" << other << "'";
  }
}

TEST(Directory, AsksOnceForEachAddressAndForMoreAddressesAtATimeLater) {
  Directory d(5000, 6000);
  int told = 0;
  d.on_wanted = [&] { ++told; };
  for (const std::uint32_t rank : {9U, 4U, 9U}) d.want(rank);
  d.want(5000);  // the rank itself
  d.want(6000);  // no rank has this number
  EXPECT_EQ(told, 1);
  EXPECT_EQ(d.take_wanted(), (Ranks{4, 9}));
  d.want(4);
  EXPECT_EQ(d.take_wanted(), Ranks{}) << "the answer is on its way";
  std::uint32_t questions = 1, known = 2;
  for (std::uint32_t rank = 4999; rank > 0; --rank) {  // asks for one rank after the other, as an all_to_all does
    d.want(rank);
    const Ranks asked = d.take_wanted();
    if (asked.empty()) continue;
    ++questions;
    ASSERT_LE(asked.size(), kMembersAskedMax);
    for (const std::uint32_t r : asked) {
      ASSERT_EQ(d.find(r), nullptr);
      d.learn(r, member(r));
      ++known;
    }
  }
  EXPECT_GE(known, 4999U);
  EXPECT_LE(questions, 40U);
}

TEST(Directory, AsksForManyAtOnceInSeveralQuestions) {
  Directory d(5000, 6000);
  for (std::uint32_t rank = 0; rank < 3000; ++rank) d.want(rank);
  std::size_t asked = 0;
  for (Ranks ranks = d.take_wanted(); !ranks.empty(); ranks = d.take_wanted()) {
    ASSERT_LE(ranks.size(), kMembersAskedMax);
    asked += ranks.size();
  }
  EXPECT_EQ(asked, 3000U);
}

TEST(Directory, UsualPeersAreFewAndAmongThemWhatSchedulesNeed) {
  EXPECT_EQ(usual_peers(3, 8), (Ranks{0, 1, 2}));
  for (const std::uint32_t nranks : {33U, 64U, 1000U, 32768U}) {
    for (const std::uint32_t rank : {0U, 1U, 17U, nranks / 2, nranks - 1}) {
      const Ranks peers = usual_peers(rank, nranks);
      EXPECT_LE(peers.size(), 3U * std::bit_width(nranks));
      EXPECT_TRUE(std::ranges::all_of(peers, [&](std::uint32_t peer) { return peer < rank; }));
      const auto has = [&](std::uint32_t peer) { return std::ranges::binary_search(peers, peer); };
      if (rank > 0) {
        EXPECT_TRUE(has(rank - 1)) << "ring";
        EXPECT_TRUE(has(0));
      }
    }
  }
}

TEST(Directory, RefusesMalformedMessages) {
  Directory d(1, 4);
  for (const char* wrong :
       {"3", "[3]", "[[4,\"h\",1,\"n\",0]]", "[[1,\"h\",70000,\"n\",0]]", "[[1,\"h\",1]]", "[[1,2,3,4,5]]"})
    EXPECT_ANY_THROW(learn_members(d, nlohmann::json::parse(wrong))) << wrong;
  for (const char* wrong : {"", "{}", "[4]", "[-1]", "[1.5]", "[\"a\"]"}) EXPECT_FALSE(decode_ranks(wrong, 4)) << wrong;
  EXPECT_EQ(decode_ranks("[3,0]", 4), (Ranks{3, 0}));
  std::string many = "[0";
  for (std::size_t i = 0; i < kMembersAskedMax; ++i) many += ",0";
  EXPECT_FALSE(decode_ranks(many + "]", 4));
}

}  // namespace
}  // namespace tributary::client

// Requests that are repeated, and tokens by pages.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class PlacesTest : public ClusterFixture {
 protected:
  GroupSpec spec(std::uint32_t ranks, const std::string& request_id = "") {
    GroupSpec wanted{.job = "job", .hosts = {}, .lanes = 2, .request_id = request_id};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) wanted.hosts.push_back(nodes(4)[rank * 4 / ranks]);
    return wanted;
  }
  void open_all() {
    open();
    enlist_all();
  }
};

TEST_F(PlacesTest, TheSameRequestAgainGivesTheSameGroupAndReservesNothingMore) {
  open_all();
  const auto first = cluster_->create_group(spec(4, "abc-0"));
  ASSERT_TRUE(first.has_value());
  const std::uint64_t held = reserved();
  advance(5s);
  const auto again = cluster_->create_group(spec(4, "abc-0"));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->descriptor.group, first->descriptor.group);
  EXPECT_EQ(again->descriptor.epoch, first->descriptor.epoch);
  EXPECT_EQ(again->descriptor.lanes[0].entries.size(), 4U) << "the answer has tokens that are good from now on";
  EXPECT_GT(again->descriptor.expires_at, first->descriptor.expires_at);
  EXPECT_EQ(reserved(), held);
  EXPECT_EQ(cluster_->group(first->descriptor.group)->lease_milliseconds_left, 15'000);
  open();  // restarts the manager in between
  EXPECT_EQ(cluster_->create_group(spec(4, "abc-0"))->descriptor.group, first->descriptor.group);
  EXPECT_NE(cluster_->create_group(spec(4, "abc-1"))->descriptor.group, first->descriptor.group);
  EXPECT_THAT(cluster_->groups(), SizeIs(2));
}

TEST_F(PlacesTest, ARequestsNameIsOfOneGroupAndFreeWhenThatHasGone) {
  open_all();
  const auto first = cluster_->create_group(spec(4, "abc-0"));
  const auto other = cluster_->create_group(spec(2, "abc-0"));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::mismatch);
  EXPECT_EQ(cluster_->create_group(spec(4, "no name")).error().code, Errc::bad_argument);
  ASSERT_TRUE(cluster_->remove_group(first->descriptor.group).has_value());
  EXPECT_NE(cluster_->create_group(spec(2, "abc-0"))->descriptor.group, first->descriptor.group);
  EXPECT_NE(cluster_->create_group(spec(4))->descriptor.group, cluster_->create_group(spec(4))->descriptor.group);
}

TEST_F(PlacesTest, AGroupOfManyRanksGetsItsPlacesByPages) {
  open("");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(enlist("a" + std::to_string(i), "h").has_value());
  const std::uint32_t ranks = 70;
  GroupSpec wanted{.job = "job", .hosts = std::vector<std::string>(ranks, "h"), .lanes = 2};
  const auto grant = cluster_->create_group(wanted);
  ASSERT_TRUE(grant.has_value());
  const GroupDescriptor& group = grant->descriptor;
  ASSERT_THAT(group.lanes, SizeIs(2)) << group.reason;
  EXPECT_THAT(group.lanes[0].entries, SizeIs(0));
  const auto verifier = *TokenVerifier::create(key_.public_key());
  std::set<std::pair<std::string, std::uint32_t>> places;
  for (std::uint32_t first = 0; first < ranks; first += 30) {
    const std::uint32_t count = std::min(30U, ranks - first);
    const auto made = cluster_->places(group.group, 1, first, count);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const auto page = token_page_from_json(to_json(*made));
    ASSERT_TRUE(page.has_value()) << page.error().message;
    ASSERT_THAT(page->lanes, SizeIs(2));
    for (std::uint32_t rank = first; rank < first + count; ++rank) {
      const GroupDescriptor part = page->for_rank(group, rank);
      ASSERT_THAT(part.lanes[1].entries, SizeIs(1));
      const LaneEntry& entry = part.lanes[1].entries[0];
      const auto claims = verifier.verify(entry.tokens.front(), clock_.unix_seconds());
      ASSERT_TRUE(claims.has_value()) << claims.error().message;
      EXPECT_EQ(claims->rank, rank);
      EXPECT_EQ(claims->lane, 1U);
      EXPECT_EQ(claims->aggregator, entry.aggregator_name);
      EXPECT_TRUE(places.emplace(claims->aggregator, claims->child).second);
      const auto last = verifier.verify(entry.tokens.back(), clock_.unix_seconds());
      ASSERT_TRUE(last.has_value());
      EXPECT_TRUE(last->root);
    }
  }
  EXPECT_THAT(places, SizeIs(ranks));
}

/// Returns the claims of all tokens of a rank.
std::vector<TokenClaims> claims_of(const GroupDescriptor& descriptor) {
  std::vector<TokenClaims> all;
  for (const LaneDescriptor& lane : descriptor.lanes) {
    for (const Token& token : lane.entries.at(0).tokens) all.push_back(read_claims(token).value());
  }
  return all;
}

TEST_F(PlacesTest, APageHoldsWhatTheAnswerOfASmallGroupHolds) {
  open_all();
  const auto grant = cluster_->create_group(spec(4));
  const auto page = cluster_->places(grant->descriptor.group, 1, 1, 3);
  ASSERT_TRUE(page.has_value());
  for (std::uint32_t rank = 1; rank < 4; ++rank) {
    GroupDescriptor in_page = page->for_rank(grant->descriptor, rank), in_answer = grant->descriptor.for_rank(rank);
    EXPECT_EQ(claims_of(in_page), claims_of(in_answer));
    // Two tokens for the same place differ: each has a salt of its own.
    for (GroupDescriptor* both : {&in_page, &in_answer}) {
      for (LaneDescriptor& lane : both->lanes) lane.entries.at(0).tokens.assign(1, Token{});
    }
    EXPECT_EQ(to_json(in_page), to_json(in_answer));
  }
}

TEST_F(PlacesTest, RefusesPagesThatAreNotThere) {
  open_all();
  const std::uint64_t id = cluster_->create_group(spec(4))->descriptor.group;
  EXPECT_EQ(cluster_->places(id + 1, 1, 0, 1).error().code, Errc::peer_gone);
  EXPECT_EQ(cluster_->places(id, 2, 0, 1).error().code, Errc::mismatch);
  const std::pair<std::uint32_t, std::uint32_t> wrong[] = {{0, 0}, {4, 1}, {0, 5}, {3, 2}, {0, 1025}, {1, UINT32_MAX}};
  for (const auto& [first, count] : wrong) {
    EXPECT_EQ(cluster_->places(id, 1, first, count).error().code, Errc::bad_argument) << first << " " << count;
  }
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"leaf-a", "leaf-b", "spine"})->descriptor.empty());
  EXPECT_EQ(cluster_->places(id, 1, 0, 1).error().code, Errc::mismatch) << "the group has no trees";
}

TEST(TokenPage, RefusesWhatMakesNoSense) {
  const auto good = [] {
    TokenPage page{.group = 1, .epoch = 2, .first_rank = 3, .expires_at = 4, .lanes = {}};
    const LaneEntry entry{.aggregator = {"h", 1}, .aggregator_name = "a", .tokens = TokenChain(2)};
    page.lanes.assign(2, {entry, entry});
    return to_json(page);
  };
  ASSERT_TRUE(token_page_from_json(good()).has_value());
  EXPECT_EQ(good()["lanes"][0]["leaves"].size(), 1U) << "the page names each leaf once";
  const auto refused = [&](const auto& change, const char* why) {
    auto json = good();
    change(json);
    const auto page = token_page_from_json(json);
    ASSERT_FALSE(page.has_value()) << why;
    EXPECT_THAT(page.error().message, HasSubstr(why));
  };
  refused([](auto& it) { it.erase("epoch"); }, "epoch is missing");
  refused([](auto& it) { it["lanes"][0]["ranks"][0]["leaf"] = 1; }, "leaf is not one of the leaves");
  refused([](auto& it) { it["lanes"][0]["ranks"][1].erase("token"); }, "a token is not base64");
  refused([](auto& it) { it["lanes"][0]["leaves"][0]["tokens"][0] = "AAAA"; }, "a token is not base64");
  refused([](auto& it) { it["lanes"][0]["leaves"][0]["port"] = 0; }, "port is 0");
  refused([](auto& it) { it["lanes"][1]["ranks"].erase(0); }, "different numbers of ranks");
  refused([](auto& it) { it["lanes"][0]["ranks"] = nlohmann::json::array_t(1025); }, "more than 1024 members");
  refused([](auto& it) { it["lanes"][0]["ranks"][0] = 7; }, "is no object");
  refused([](auto& it) { it = 7; }, "is no object");
}

}  // namespace
}  // namespace tributary::manager

// Places that come by pages, and repeated requests: rank 0's requests to the manager, and the answers that it passes
// on.
#include "client/recovery/places.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/communicator/coordinator_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMany = kTokenPageRanksMax + 500;

CoordinatorSettings many_ranks() {
  CoordinatorSettings settings = Rig::usual();
  settings.nranks = kMany;
  settings.hosts.assign(kMany, "h");
  return settings;
}

GroupDescriptor without_places() {
  GroupDescriptor d = descriptor_of(1, 0);
  return d;
}

TokenPage page_of(std::uint32_t first, std::uint32_t count) {
  TokenPage page{.group = kGroup, .epoch = 1, .first_rank = first, .expires_at = 99, .lanes = {}};
  page.lanes.emplace_back();
  for (std::uint32_t rank = first; rank < first + count; ++rank) {
    page.lanes[0].push_back(
        {.aggregator = {"h", 1}, .aggregator_name = "of " + std::to_string(rank), .tokens = TokenChain(1)});
  }
  return page;
}

/// Answers the oldest request for a page.
void give(Rig& rig, Result<TokenPage> page) {
  ASSERT_FALSE(rig.manager.pages.empty());
  const auto answer = std::move(rig.manager.pages.front());
  rig.manager.pages.pop_front();
  answer(std::move(page));
}

class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_.start();
    rig_.manager.trees.front()(without_places());
    rig_.manager.trees.pop_front();
    (void)rig_.said();
  }
  Rig rig_{many_ranks()};
};

TEST_F(PlacesTest, EachRankGetsItsOwnPartAsItsPageComes) {
  ASSERT_EQ(rig_.manager.pages.size(), 1U) << "rank 0 asks for one page at a time";
  give(rig_, page_of(0, kTokenPageRanksMax));
  EXPECT_EQ(rig_.output.sent.size(), kTokenPageRanksMax);
  EXPECT_EQ(rig_.said(), "descriptor to each; asks for places 1024 to 1523 of epoch 1");
  give(rig_, page_of(kTokenPageRanksMax, 500));
  EXPECT_TRUE(rig_.manager.pages.empty());
  ASSERT_EQ(rig_.output.sent.size(), kMany);
  for (std::uint32_t rank = 0; rank < kMany; ++rank) {
    ASSERT_EQ(rig_.output.sent[rank].first, rank);
    const auto part = group_descriptor_from_json(nlohmann::json::parse(rig_.output.sent[rank].second.body));
    ASSERT_TRUE(part.has_value()) << part.error().message;
    ASSERT_EQ(part->lanes[0].entries.size(), 1U);
    ASSERT_EQ(part->lanes[0].entries[0].aggregator_name, "of " + std::to_string(rank));
    EXPECT_EQ(part->expires_at, 99);
  }
}

TEST_F(PlacesTest, EachPageStartsTheLimitOfJoiningAgain) {
  const auto nearly = Rig::usual().join_limit - 100ms;
  rig_.wait(nearly);
  give(rig_, page_of(0, kTokenPageRanksMax));
  rig_.wait(nearly);
  EXPECT_EQ(rig_.said().find("commit"), std::string::npos);
  rig_.wait(200ms);
  EXPECT_NE(rig_.said().find("commit never"), std::string::npos) << "the trees did not form in time";
  give(rig_, page_of(kTokenPageRanksMax, 500));
  EXPECT_EQ(rig_.output.sent.size(), kTokenPageRanksMax) << "a page that comes too late goes to nobody";
}

TEST_F(PlacesTest, APageThatDoesNotComeOrDoesNotFitGivesTheTreesUp) {
  const std::function<Result<TokenPage>()> wrong[] = {
      [] { return fail(Errc::unreachable, "the manager does not answer"); },
      [] { return page_of(1, kTokenPageRanksMax); },
      [] { return page_of(0, 5); },
      [] { return TokenPage{}; },
  };
  for (const auto& make : wrong) {
    Rig rig{many_ranks()};
    rig.start();
    rig.manager.trees.front()(without_places());
    give(rig, make());
    EXPECT_TRUE(rig.output.sent.empty());
    EXPECT_TRUE(rig.manager.pages.empty());
    EXPECT_NE(rig.said().find("commit never"), std::string::npos);
  }
}

TEST_F(PlacesTest, NothingIsAskedOnceTheTreesAreLost) {
  rig_.coordinator.stop();
  give(rig_, page_of(0, kTokenPageRanksMax));
  EXPECT_TRUE(rig_.output.sent.empty());
  EXPECT_TRUE(rig_.manager.pages.empty());
}

TEST(Attempts, ARequestWhoseAnswerDidNotComeIsTheSameRequestAgain) {
  Rig rig;
  rig.start();
  rig.wait(Rig::usual().answer_limit + 1s);  // no answer comes, so rank 0 asks again
  ASSERT_EQ(rig.manager.attempts.size(), 2U);
  EXPECT_EQ(rig.manager.attempts[1], rig.manager.attempts[0]);
  EXPECT_EQ(rig.manager.link_rate, kLinkRate);
  EXPECT_EQ(rig.manager.rail, "rail-1");
  rig.manager.trees.back()(fail(Errc::unreachable, "the manager does not answer"));
  rig.wait(1s);
  ASSERT_EQ(rig.manager.attempts.size(), 3U);
  EXPECT_EQ(rig.manager.attempts[2], rig.manager.attempts[0]);
}

TEST(Attempts, ARequestAfterAnAnswerIsAnotherOne) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from_all(rig.lane_failed());
  rig.from_all(rig.holdings({5}));
  rig.wait(1s);
  rig.answer(fail(Errc::bad_argument, "forgotten"));
  rig.wait(2s);
  ASSERT_EQ(rig.manager.attempts.size(), 2U);
  EXPECT_NE(rig.manager.attempts[1], rig.manager.attempts[0]);
}

}  // namespace
}  // namespace tributary::client

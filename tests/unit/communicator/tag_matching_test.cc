// Matching of offers and receives: the rules of order, and the same results as a list that is searched from its
// beginning.
#include "client/communicator/tag_matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "tests/unit/communicator/any_rank.h"

namespace tributary::client {
namespace {

Offer offer(std::uint32_t from, std::uint32_t tag, std::uint64_t number) {
  return {.from = from, .tag = tag, .number = number, .signature = {}};
}

/// Makes a receive; `count` tells receives apart.
Message receive(std::uint32_t tag, std::uint64_t count) {
  return {.count = count, .tag = tag, .on_done = [](const Status&) {}};
}

TEST(TagMatching, AReceiveTakesOnlyItsTag) {
  TagMatching matching;
  EXPECT_FALSE(matching.offered(offer(1, 7, 0)));
  Message other = receive(8, 1), same = receive(7, 2);
  EXPECT_FALSE(matching.called(1, other));
  const auto found = matching.called(1, same);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 0U);
  const auto late = matching.offered(offer(1, 8, 1));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->count, 1U);
  EXPECT_FALSE(matching.receives_wait());
}

TEST(TagMatching, MessagesOfOneRankWithOneTagKeepTheirOrder) {
  TagMatching matching;
  for (std::uint64_t number = 0; number < 3; ++number) EXPECT_FALSE(matching.offered(offer(1, 7, number)));
  for (std::uint64_t number = 0; number < 3; ++number) {
    Message message = receive(7, number);
    EXPECT_EQ(matching.called(number == 1 ? kAnyRank : 1, message)->number, number);
  }
}

TEST(TagMatching, TheReceiveThatWasCalledFirstGetsTheOffer) {
  TagMatching matching;
  Message any = receive(7, 1), named = receive(7, 2), again = receive(7, 3);
  EXPECT_FALSE(matching.called(2, named));
  EXPECT_FALSE(matching.called(kAnyRank, any));
  EXPECT_FALSE(matching.called(2, again));
  EXPECT_EQ(matching.offered(offer(2, 7, 0))->count, 2U);
  EXPECT_EQ(matching.offered(offer(2, 7, 1))->count, 1U)
      << "this receive was called before the one that names the rank";
  EXPECT_EQ(matching.offered(offer(2, 7, 2))->count, 3U);
}

TEST(TagMatching, AReceiveFromAnyRankGetsTheOfferThatCameFirst) {
  TagMatching matching;
  EXPECT_FALSE(matching.offered(offer(5, 7, 0)));
  EXPECT_FALSE(matching.offered(offer(2, 7, 0)));
  EXPECT_EQ(matching.offers_of(5), 1U);
  Message first = receive(7, 1), second = receive(7, 2);
  EXPECT_EQ(matching.called(kAnyRank, first)->from, 5U);
  EXPECT_EQ(matching.called(kAnyRank, second)->from, 2U);
  EXPECT_EQ(matching.offers_of(5), 0U);
}

TEST(TagMatching, TheErrorOfAReceiveNamesTheMessageThatItWaitedFor) {
  TagMatching matching;
  std::vector<std::string> texts;
  for (const auto source : {kAnyRank, std::optional<std::uint32_t>(3)}) {
    Message message{.count = 4, .dtype = DType::float32, .tag = 9, .on_done = [&](const Status& status) {
                      texts.push_back(status.error().message);
                    }};
    message.called_at = transport::TimePoint(std::chrono::seconds(source ? 2 : 1));
    EXPECT_FALSE(matching.called(source, message));
  }
  EXPECT_EQ(matching.overdue(transport::TimePoint(std::chrono::seconds(1))), "");
  EXPECT_EQ(matching.overdue(transport::TimePoint(std::chrono::seconds(2))),
            "recv of 4 float32 with tag 9 from any rank");
  matching.fail_receives({Errc::peer_gone, "rank 1 is gone"});
  EXPECT_EQ(texts, (std::vector<std::string>{"recv of 4 float32 with tag 9 from any rank: rank 1 is gone",
                                             "recv of 4 float32 with tag 9 from rank 3: rank 1 is gone"}));
  EXPECT_FALSE(matching.receives_wait());
}

/// A second TagMatching that searches whole lists, for comparison.
class Lists {
 public:
  std::optional<std::uint64_t> offered(const Offer& offer) {
    const auto it = std::ranges::find_if(
        receives_, [&](const auto& r) { return r.tag == offer.tag && (!r.source || *r.source == offer.from); });
    if (it == receives_.end()) {
      offers_.push_back(offer);
      return std::nullopt;
    }
    const std::uint64_t found = it->id;
    receives_.erase(it);
    return found;
  }
  std::optional<std::pair<std::uint32_t, std::uint64_t>> called(std::optional<std::uint32_t> source, std::uint32_t tag,
                                                                std::uint64_t id) {
    const auto it =
        std::ranges::find_if(offers_, [&](const Offer& o) { return o.tag == tag && (!source || *source == o.from); });
    if (it == offers_.end()) {
      receives_.push_back({source, tag, id});
      return std::nullopt;
    }
    const std::pair found{it->from, it->number};
    offers_.erase(it);
    return found;
  }
  [[nodiscard]] std::size_t offers_of(std::uint32_t rank) const {
    return static_cast<std::size_t>(std::ranges::count(offers_, rank, &Offer::from));
  }

 private:
  struct Receive {
    std::optional<std::uint32_t> source;
    std::uint32_t tag;
    std::uint64_t id;
  };
  std::list<Offer> offers_;
  std::list<Receive> receives_;
};

TEST(TagMatching, FindsTheSameAsASearchFromTheBeginning) {
  std::mt19937 random(1);
  for (int life = 0; life < 20; ++life) {
    TagMatching matching;
    Lists lists;
    for (std::uint64_t step = 0; step < 1000; ++step) {
      const auto rank = static_cast<std::uint32_t>(random() % 4), tag = static_cast<std::uint32_t>(1 + random() % 3);
      if (random() % 2 == 0) {
        const Offer one = offer(rank, tag, step);
        const auto message = matching.offered(one);
        const auto expected = lists.offered(one);
        ASSERT_EQ(message ? std::optional(message->count) : std::nullopt, expected);
      } else {
        const auto source = random() % 2 == 0 ? kAnyRank : std::optional(rank);
        Message message = receive(tag, step);
        const auto found = matching.called(source, message);
        const auto expected = lists.called(source, tag, step);
        ASSERT_EQ(found ? std::optional(std::pair(found->from, found->number)) : std::nullopt, expected);
      }
      ASSERT_EQ(matching.offers_of(rank), lists.offers_of(rank));
    }
  }
}

}  // namespace
}  // namespace tributary::client

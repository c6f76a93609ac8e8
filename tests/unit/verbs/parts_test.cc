// The parts of a connection over queue pairs that need no device: credit, inbox, and the fetch of a payload.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "transport/verbs/credit.h"
#include "transport/verbs/fetch.h"
#include "transport/verbs/inbox.h"

namespace tributary::transport::verbs {
namespace {

// ---- Credit

Credit opened(std::uint32_t depth, std::uint32_t peer_depth) {
  Credit credit;
  credit.post(depth);
  credit.open(peer_depth);
  return credit;
}

TEST(Credit, KeepsTheLastPlaceForAMessageThatAcknowledges) {
  Credit credit = opened(4, 4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(credit.may_send()) << i;
    credit.send();
  }
  EXPECT_FALSE(credit.may_send());
  credit.consume(1);
  ASSERT_TRUE(credit.may_send());
  EXPECT_EQ(credit.tell_consumed(), 1U);
  credit.send();
  EXPECT_FALSE(credit.may_send());
}

TEST(Credit, IsFreeAgainOnceThePeerHasConsumedMessages) {
  Credit credit = opened(4, 4);
  for (int i = 0; i < 3; ++i) credit.send();
  const auto heard = credit.hear(2, 0);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->consumed, 2U);
  EXPECT_TRUE(credit.may_send());
  EXPECT_EQ(credit.number(), 3U);
}

TEST(Credit, RefusesAcknowledgementsOfUnsentMessages) {
  Credit credit = opened(4, 4);
  credit.send();
  EXPECT_FALSE(credit.hear(2, 0));
  EXPECT_FALSE(credit.hear(1, 1)) << "nothing was offered";
  credit.offer();
  EXPECT_TRUE(credit.hear(1, 1));
  EXPECT_FALSE(credit.hear(0, 1)) << "a count does not go back";
}

TEST(Credit, OwesAnAcknowledgementForHalfOfItsReceivesAndForEachFetch) {
  Credit credit = opened(8, 8);
  credit.consume(3);
  EXPECT_FALSE(credit.owes_word());
  credit.consume(1);
  EXPECT_TRUE(credit.owes_word());
  EXPECT_EQ(credit.tell_consumed(), 4U);
  EXPECT_FALSE(credit.owes_word());
  credit.fetch();
  EXPECT_TRUE(credit.owes_word());
  EXPECT_EQ(credit.tell_fetched(), 1U);
  EXPECT_FALSE(credit.owes_word());
}

TEST(Credit, FindsAWholeCountFromItsLastBits) {
  constexpr std::uint32_t kMask = 0x7F;
  Credit credit = opened(64, 64);
  std::uint32_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    credit.consume(1);
    static_cast<void>(credit.tell_consumed());
    credit.send();
    ++sent;
    const std::uint32_t whole = credit.whole_consumed(sent & kMask, kMask);
    ASSERT_EQ(whole, sent);
    ASSERT_TRUE(credit.hear(whole, 0));
  }
}

/// Two sides send as much as they may, in any order, and consume each message some time later. Every message finds a
/// receive posted for it, and the two sides never both wait for ever.
TEST(Credit, NeverOverrunsAndNeverStops) {
  struct Message {
    std::uint32_t consumed, fetched;
  };
  struct Side {
    Credit credit;
    std::vector<Message> to_here;
    std::uint64_t sent = 0;
  };
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto depth = static_cast<std::uint32_t>(4 + random() % 13);
    std::array<Side, 2> sides{Side{opened(depth, depth), {}, 0}, Side{opened(depth, depth), {}, 0}};
    for (int step = 0; step < 2000; ++step) {
      const std::size_t at = random() % 2;
      Side& here = sides[at];
      Side& there = sides[1 - at];
      if (random() % 2 == 0 && here.credit.may_send()) {
        there.to_here.push_back({here.credit.tell_consumed(), here.credit.tell_fetched()});
        here.credit.send();
        ++here.sent;
        ASSERT_LE(there.to_here.size(), depth) << "seed " << seed;
      } else if (!here.to_here.empty()) {
        ASSERT_TRUE(here.credit.hear(here.to_here.front().consumed, here.to_here.front().fetched));
        here.to_here.erase(here.to_here.begin());
        here.credit.consume(1);
      }
      const bool quiet = sides[0].to_here.empty() && sides[1].to_here.empty();
      ASSERT_TRUE(!quiet || sides[0].credit.may_send() || sides[1].credit.may_send()) << "seed " << seed;
    }
    EXPECT_GT(sides[0].sent + sides[1].sent, 500U) << "seed " << seed;
  }
}

TEST(CreditDeathTest, RefusesAMessageWithoutAReceiveForIt) {
  Credit credit = opened(4, 4);
  for (int i = 0; i < 4; ++i) credit.send();
  EXPECT_DEATH(credit.send(), "message 5 is sent while the peer has told of 0 and has receives for 4");
}

TEST(CreditDeathTest, RefusesMoreReceivesOfThePeerThanPlacesInTheSendRing) {
  Credit credit;
  credit.post(4);
  EXPECT_DEATH(credit.open(5), "the peer's 5 receives are used with 4 of ours");
}

// ---- Inbox

Came numbered(std::uint32_t number) {
  return {.here = true, .index = number};
}

TEST(Inbox, ServesAnEarlyMessageInItsTurn) {
  Inbox inbox;
  EXPECT_TRUE(inbox.keep_early(2, numbered(2)));
  EXPECT_TRUE(inbox.keep_early(1, numbered(1)));
  EXPECT_FALSE(inbox.next_early()) << "number 0 has not come";
  inbox.take_next();
  std::vector<std::uint32_t> turns;
  while (const auto next = inbox.next_early()) {
    turns.push_back(next->index);
    inbox.take_next();
  }
  EXPECT_EQ(turns, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(inbox.came(), 3U);
}

TEST(Inbox, RefusesTwoMessagesOfOneNumber) {
  Inbox inbox;
  EXPECT_TRUE(inbox.keep_early(3, numbered(3)));
  EXPECT_FALSE(inbox.keep_early(3, numbered(3)));
}

TEST(Inbox, GoesOnBeyondTheNumbersThatFitInTheirBits) {
  Inbox inbox;
  for (std::uint32_t round = 0; round < 3 * (kNumberMask + 1); ++round) {
    ASSERT_TRUE(inbox.keep_early(1, numbered(round + 1)));
    inbox.take_next();
    const auto next = inbox.next_early();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->index, round + 1);
    inbox.take_next();
  }
}

TEST(Inbox, ReadsTheRecordsOfOneMessageAfterTheOther) {
  Inbox inbox;
  inbox.push({.index = 1, .bytes = 100});
  inbox.push({.index = 2, .bytes = 100});
  EXPECT_EQ(inbox.read_to(), sizeof(MessagePrefix));
  inbox.begin_record(72);
  EXPECT_EQ(inbox.read_to(), sizeof(MessagePrefix)) << "a handler that does not want it yet is asked again";
  inbox.end_record();
  EXPECT_EQ(inbox.read_to(), 72U);
  EXPECT_EQ(inbox.pop().index, 1U);
  EXPECT_EQ(inbox.read_to(), sizeof(MessagePrefix));
  EXPECT_EQ(inbox.first().index, 2U);
}

TEST(Inbox, KnowsThePeersLastMessage) {
  Inbox inbox;
  inbox.push({.index = 1});
  inbox.push({.index = 2});
  EXPECT_FALSE(inbox.has_last());
  inbox.note_last();
  EXPECT_TRUE(inbox.has_last());
  EXPECT_FALSE(inbox.first_is_last());
  inbox.pop();
  EXPECT_TRUE(inbox.first_is_last());
}

TEST(InboxDeathTest, IsNotReadWhileItIsEmpty) {
  Inbox inbox;
  EXPECT_DEATH(static_cast<void>(inbox.pop()), "no message has arrived");
}

// ---- Fetch

TEST(Fetch, AsksForAPayloadInPiecesOfWhichSomeAreUnderWay) {
  std::array<std::byte, 100> place{};
  Fetch fetch;
  fetch.set_reads_max(2);
  fetch.begin(place, nullptr, {.address = 1000, .key = 7});
  std::vector<std::uint64_t> asked;
  while (const auto piece = fetch.next(30)) {
    EXPECT_EQ(piece->to.data(), place.data() + (piece->from - 1000));
    EXPECT_EQ(piece->key, 7U);
    asked.push_back(piece->from);
  }
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{1000, 1030}));
  fetch.read_over();
  EXPECT_EQ(fetch.next(30)->from, 1060U);
  EXPECT_FALSE(fetch.all_asked());
  fetch.read_over();
  const auto last = fetch.next(30);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->to.size(), 10U);
  EXPECT_TRUE(fetch.all_asked());
  EXPECT_FALSE(fetch.all_read());
  fetch.read_over();
  fetch.read_over();
  EXPECT_TRUE(fetch.all_read());
}

TEST(FetchDeathTest, BeginsNoPayloadWhileReadsOfAnotherAreUnderWay) {
  std::array<std::byte, 100> place{};
  Fetch fetch;
  fetch.begin(place, nullptr, {});
  static_cast<void>(fetch.next(10));
  EXPECT_DEATH(fetch.begin(place, nullptr, {}), "a payload is fetched while 1 reads of another are under way");
}

}  // namespace
}  // namespace tributary::transport::verbs

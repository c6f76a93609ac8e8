// Messages with tags: frames of the types offer, want and message, and such frames that a rank must not send.
#include "client/communicator/tagged_messages.h"

#include "tests/unit/communicator/any_rank.h"
#include "tests/unit/communicator/scripted_peers.h"

namespace tributary::client {
namespace {

using Ends = std::vector<std::string>;
using Numbers = std::vector<std::uint64_t>;

class TaggedMessagesTest : public ScriptedPeers {
 protected:
  void message(std::uint32_t from, std::uint64_t number, std::uint64_t count = 4) {
    comes(PeerClass::tagged, from, number, count);
  }
  std::deque<ScriptedFrame> sent(std::uint32_t to) { return std::exchange(channel(PeerClass::tagged, to).sent, {}); }
};

TEST_F(TaggedMessagesTest, AsksForMessagesInTheOrderOfReceives) {
  for (std::uint64_t number = 0; number < 3; ++number) offers(1, number, 10 + number);
  EXPECT_EQ(wanted(1), (Numbers{}));
  receive("12", 1, 12);
  receive("10", 1, 10);
  EXPECT_EQ(wanted(1), (Numbers{2, 0}));
  message(1, 2);
  message(1, 0);
  receive("11", kAnyRank, 11);
  EXPECT_EQ(wanted(1), (Numbers{1}));
  message(1, 1);
  EXPECT_EQ(ended(), (Ends{"12: from 1, 52", "10: from 1, 50", "11: from 1, 51"}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(TaggedMessagesTest, OffersAreTakenWhileDataComes) {
  offers(1, 0, 5, 600'000);
  receive("long", 1, 5, 600'000);
  auto& wire = channel(PeerClass::tagged, 1);
  wire.comes({header_of(FrameType::message, 0, 0, 600'000), std::vector(kPieceBytes, value(1, 0))});
  offers(1, 1, 6);
  wire.comes({header_of(FrameType::message, 0, 1, 600'000), std::vector(kPieceBytes, value(1, 0))});
  wire.comes({header_of(FrameType::message, 0, 2, 600'000), std::vector(600'000 - 2 * kPieceBytes, value(1, 0))});
  EXPECT_EQ(ended(), (Ends{"long: from 1, 50"}));
  EXPECT_FALSE(wire.unread());
}

TEST_F(TaggedMessagesTest, SendsMessagesInTheOrderOfRequests) {
  send("a", 1, 7, std::byte{1});
  send("b", 1, 8, std::byte{2});
  send("c", 1, 7, std::byte{3});
  std::uint64_t number = 0;
  for (const ScriptedFrame& frame : sent(1)) {
    EXPECT_EQ(frame.header.type, FrameType::offer);
    EXPECT_EQ(frame.header.operation, number);
    EXPECT_EQ(frame.header.sequence, number++ == 1 ? 8U : 7U);
    EXPECT_EQ(frame.header.count, 4U);
    EXPECT_TRUE(frame.payload.empty());
  }
  EXPECT_EQ(number, 3U);
  wants(1, 1);
  wants(1, 0);
  const auto data = sent(1);
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[0].payload, std::vector(4, std::byte{2}));
  EXPECT_EQ(data[1].payload, std::vector(4, std::byte{1}));
  EXPECT_EQ(data[1].header.type, FrameType::message);
  EXPECT_EQ(ended(), (Ends{"b: sent", "a: sent"}));
  EXPECT_FALSE(queue_.idle());
  EXPECT_EQ(queue_.overdue(transport::TimePoint(std::chrono::seconds(1))), "send of 4 uint8 with tag 7 to rank 1");
}

TEST_F(TaggedMessagesTest, ThisRankSendsToItself) {
  send("a", 0, 7, std::byte{1});
  send("b", 0, 8, std::byte{2});
  receive("8", kAnyRank, 8);
  receive("7", 0, 7);
  EXPECT_EQ(ended(), (Ends{"b: sent", "8: from 0, 2", "a: sent", "7: from 0, 1"}));
  receive("9", kAnyRank, 9, 3);
  send("c", 0, 9);
  EXPECT_EQ(ended(), (Ends{"c: send of 4 uint8 with tag 9 to rank 0 met recv of 3 uint8 with tag 9 from rank 0",
                           "9: send of 4 uint8 with tag 9 to rank 0 met recv of 3 uint8 with tag 9 from rank 0"}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(TaggedMessagesTest, AMessageOfAnotherCountIsNotAskedFor) {
  offers(2, 0, 7);
  receive("a", kAnyRank, 7, 5);
  EXPECT_EQ(disagreed_, (Ends{"rank 2 sent 4 uint8 with tag 7 to rank 0, which called recv for 5 uint8"}));
  EXPECT_EQ(wanted(2), (Numbers{}));
  EXPECT_FALSE(queue_.idle()) << "the message ends with the communicator";
}

TEST_F(TaggedMessagesTest, AnOfferIsNoSignOfLifeButAWantAndDataAre) {
  offers(1, 0, 7);
  EXPECT_EQ(arrived_, 0);
  receive("a", 1, 7);
  message(1, 0);
  EXPECT_EQ(arrived_, 1);
  send("b", 1, 7);
  wants(1, 0);
  EXPECT_EQ(arrived_, 2);
}

TEST_F(TaggedMessagesTest, RefusesARequestForAMessageThatWasNotOffered) {
  wants(1, 0);
  EXPECT_EQ(lost_, (Ends{"1: it wants message 0 with a tag, which was not offered to it, or which it has received"}));
  EXPECT_TRUE(channel(PeerClass::tagged, 1).closed());
}

TEST_F(TaggedMessagesTest, RefusesARepeatedRequest) {
  send("a", 1, 7);
  wants(1, 0);
  EXPECT_TRUE(lost_.empty());
  wants(1, 0);
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_EQ(ended(), (Ends{"a: sent"}));
}

TEST_F(TaggedMessagesTest, RefusesOffersThatAreRepeatedOrLeftOut) {
  offers(1, 0, 7);
  offers(1, 0, 7);
  offers(2, 1, 7);
  EXPECT_EQ(lost_, (Ends{"1: it offers message 0 with a tag, after 1 earlier offers",
                         "2: it offers message 1 with a tag, after 0 earlier offers"}));
}

TEST_F(TaggedMessagesTest, RefusesInvalidTags) {
  offers(1, 0, 0);
  offers(2, 0, std::uint64_t{1} << 32U);
  EXPECT_EQ(lost_, (Ends{"1: it offers a message with tag 0", "2: it offers a message with tag 4294967296"}));
}

TEST_F(TaggedMessagesTest, RefusesDataWithoutARequest) {
  message(1, 0);
  EXPECT_EQ(lost_, (Ends{"1: a message with a tag that nobody has asked for"}));
  offers(2, 0, 7);
  message(2, 0);
  EXPECT_EQ(lost_.size(), 2U);
}

TEST_F(TaggedMessagesTest, RefusesOtherDataThanWasOffered) {
  offers(1, 0, 7);
  receive("a", 1, 7);
  message(1, 0, 3);
  EXPECT_EQ(disagreed_.size(), 1U);
  EXPECT_TRUE(ended().empty());
}

TEST_F(TaggedMessagesTest, KeepsABoundedNumberOfOffersOfEachRank) {
  for (std::uint64_t number = 0; number < kOffersMax; ++number) offers(1, number, 1 + number % 7);
  EXPECT_TRUE(lost_.empty());
  offers(2, 0, 7);
  offers(1, kOffersMax, 7);
  EXPECT_EQ(lost_, (Ends{"1: it offers more than 65536 messages that nobody receives"}));
  receive("of 2", 2, 7);
  EXPECT_EQ(wanted(2), (Numbers{0}));
}

TEST_F(TaggedMessagesTest, SendsABoundedNumberThatNobodyReceivesAndThenSaysSo) {
  std::size_t refused = 0;
  std::string text;
  const auto send_one = [&] {
    queue_.send(1, {.sends = true, .tag = 7, .on_done = [&](const Status& status) {
                      if (status) return;
                      ++refused;
                      text = status.error().message;
                      EXPECT_EQ(status.error().code, Errc::exhausted);
                    }});
  };
  for (std::uint64_t number = 0; number < kOffersMax; ++number) send_one();
  EXPECT_EQ(refused, 0U);
  send_one();
  EXPECT_EQ(refused, 1U);
  EXPECT_EQ(text, "send of 0 uint8 with tag 7 to rank 1: 65536 sends with tags to that rank wait for their receives");
  wants(1, 5);
  send_one();
  EXPECT_EQ(refused, 1U) << "there is room again";
}

TEST_F(TaggedMessagesTest, AnEndNamesEachMessageThatWaits) {
  send("a", 1, 7);
  receive("b", kAnyRank, 8);
  queue_.fail_all({Errc::peer_gone, "rank 3 is gone"});
  EXPECT_EQ(ended(), (Ends{"a: send of 4 uint8 with tag 7 to rank 1: rank 3 is gone",
                           "b: recv of 4 uint8 with tag 8 from any rank: rank 3 is gone"}));
  EXPECT_TRUE(queue_.idle());
}

}  // namespace
}  // namespace tributary::client

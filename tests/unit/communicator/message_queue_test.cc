// The choice of the receive that gets a message: from a named rank, from any rank, from this rank itself.
#include "client/communicator/message_queue.h"

#include "tests/unit/communicator/any_rank.h"
#include "tests/unit/communicator/scripted_peers.h"

namespace tributary::client {
namespace {

using Ends = std::vector<std::string>;

class MessageQueueTest : public ScriptedPeers {
 protected:
  void message(std::uint32_t from, std::uint64_t number, std::uint64_t count = 4) {
    comes(PeerClass::message, from, number, count);
  }
};

TEST_F(MessageQueueTest, AReceiveFromAnyRankGetsTheNextMessage) {
  receive("a", kAnyRank);
  receive("b", kAnyRank);
  message(3, 0);
  message(1, 0);
  EXPECT_EQ(ended(), (Ends{"a: from 3, 150", "b: from 1, 50"}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(MessageQueueTest, AReceiveFromAnyRankGetsTheMessageThatCameFirst) {
  message(3, 0);
  message(1, 0);
  message(3, 1);  // waits behind the first message on its connection
  for (const char* name : {"a", "b", "c"}) receive(name, kAnyRank);
  EXPECT_EQ(ended(), (Ends{"a: from 3, 150", "b: from 1, 50", "c: from 3, 151"}));
}

TEST_F(MessageQueueTest, AMessageIsReceivedWholeThoughAnotherComesInBetween) {
  receive("a", kAnyRank, 0, 600'000);
  auto& wire = channel(PeerClass::message, 2);
  const auto frame = [&](std::uint64_t sequence, std::size_t bytes) {
    wire.comes({header_of(FrameType::message, 0, sequence, 600'000), std::vector(bytes, value(2, 0))});
  };
  frame(0, kPieceBytes);
  message(1, 0, 600'000);
  frame(1, kPieceBytes);
  frame(2, 600'000 - 2 * kPieceBytes);
  EXPECT_EQ(ended(), (Ends{"a: from 2, 100"}));
  receive("b", kAnyRank, 0, 600'000);
  EXPECT_EQ(ended(), (Ends{"b: from 1, 50"}));
}

// The earlier call gets its message first, as in MPI.
TEST_F(MessageQueueTest, AReceiveThatNamesItsRankWaitsBehindOneFromAnyRank) {
  receive("any", kAnyRank);
  receive("of 1", 1);
  receive("any again", kAnyRank);
  receive("of 2", 2);
  message(1, 0);
  EXPECT_EQ(ended(), (Ends{"any: from 1, 50"}));
  message(2, 0);
  EXPECT_EQ(ended(), (Ends{"any again: from 2, 100"}));
  message(1, 1);
  message(2, 1);
  EXPECT_EQ(ended(), (Ends{"of 1: from 1, 51", "of 2: from 2, 101"}));
}

TEST_F(MessageQueueTest, AReceiveFromAnyRankLeavesTheMessagesOfRanksThatEarlierReceivesNamed) {
  receive("of 1", 1);
  receive("any", kAnyRank);
  message(1, 0);
  EXPECT_EQ(ended(), (Ends{"of 1: from 1, 50"}));
  message(1, 1);
  EXPECT_EQ(ended(), (Ends{"any: from 1, 51"}));
}

TEST_F(MessageQueueTest, AMessageThatCameEarlyGoesToTheReceiveThatNamesIt) {
  message(3, 0);
  message(1, 0);
  receive("of 3", 3);
  receive("any", kAnyRank);
  EXPECT_EQ(ended(), (Ends{"of 3: from 3, 150", "any: from 1, 50"}));
}

TEST_F(MessageQueueTest, AnyRankIncludesThisRank) {
  receive("any", kAnyRank);
  receive("own", 0);
  receive("any again", kAnyRank);
  send("first", 0);
  EXPECT_EQ(ended(), (Ends{"first: sent", "any: from 0, 9"}));
  send("second", 0);
  EXPECT_EQ(ended(), (Ends{"second: sent", "own: from 0, 9"}));
  send("third", 0);
  EXPECT_EQ(ended(), (Ends{"third: sent", "any again: from 0, 9"}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(MessageQueueTest, OwnMessagesTakeTheirTurnAmongThoseOfOthers) {
  send("own", 0);
  message(2, 0);
  send("own again", 0);
  for (const char* name : {"a", "b", "c"}) receive(name, kAnyRank);
  EXPECT_EQ(ended(), (Ends{"own: sent", "a: from 0, 9", "b: from 2, 100", "own again: sent", "c: from 0, 9"}));
}

TEST_F(MessageQueueTest, AReceiveThatIsCalledWhenAnotherEndsComesBehindThoseThatWait) {
  receive("any", kAnyRank);
  receive("own", 0, 0, 4, [this] { receive("called then", 1); });
  receive("of 1", 1);
  send("own", 0);
  message(1, 0);
  send("own", 0);
  message(1, 1);
  const auto ends = ended();
  EXPECT_EQ(ends.front(), "own: sent");
  EXPECT_EQ(ends[1], "any: from 0, 9");
  const auto first = std::ranges::find(ends, "of 1: from 1, 50"),
             second = std::ranges::find(ends, "called then: from 1, 51");
  EXPECT_NE(second, ends.end());
  EXPECT_LT(first, second);
}

TEST_F(MessageQueueTest, SaysWhoSentAnotherCount) {
  receive("any", kAnyRank, 0, 5);
  message(2, 0);
  EXPECT_EQ(disagreed_, (Ends{"rank 2 sent 4 uint8 to rank 0, which called recv for 5 uint8"}));
  EXPECT_FALSE(queue_.idle());
}

TEST_F(MessageQueueTest, AnEndNamesEachMessageThatWaits) {
  receive("any", kAnyRank);
  receive("of 2", 2, 0, 3);
  send("to 1", 1);  // the connection to rank 1 is not there yet
  EXPECT_EQ(queue_.overdue(transport::TimePoint(std::chrono::seconds(1))), "send of 4 uint8 to rank 1");
  queue_.fail_all({Errc::peer_gone, "rank 3 is gone"});
  EXPECT_EQ(ended(), (Ends{"to 1: send of 4 uint8 to rank 1: rank 3 is gone",
                           "any: recv of 4 uint8 from any rank: rank 3 is gone",
                           "of 2: recv of 3 uint8 from rank 2: rank 3 is gone"}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(MessageQueueTest, NamesAReceiveFromAnyRankThatIsOverdue) {
  receive("any", kAnyRank, 0, 3);
  EXPECT_EQ(queue_.overdue(transport::TimePoint(std::chrono::seconds(1))), "recv of 3 uint8 from any rank");
}

}  // namespace
}  // namespace tributary::client

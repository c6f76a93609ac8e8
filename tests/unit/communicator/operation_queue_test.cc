// The rules on the order of operations, one by one.
#include "client/communicator/operation_queue.h"

#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

using Numbers = std::vector<std::uint64_t>;
using enum Operation::State;

class OperationQueueTest : public PartTest {
 protected:
  Operation& add() {
    return add_operation(queue_, now_, [this, number = queue_.next_number()](const Status& status) {
      (status ? ended_ : failed_).push_back(number);
      if (!status) last_error_ = status.error().message;
    });
  }
  void end(std::uint64_t number) { queue_.finish(*queue_.find(number), {}); }

  ManualWays ways_;
  OperationQueue queue_{ways_, 1};
  Numbers ended_, failed_;
  std::string last_error_;
};

TEST_F(OperationQueueTest, BetweenTheRanksEachRunsAlone) {
  for (int i = 0; i < 3; ++i) add();
  EXPECT_EQ(ways_.begun, (Numbers{0}));
  end(0);
  EXPECT_EQ(ways_.begun, (Numbers{0, 1}));
  end(1);
  end(2);
  EXPECT_EQ(ended_, (Numbers{0, 1, 2}));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.first_number(), 3U);
}

TEST_F(OperationQueueTest, ByTreesTheyRunTogether) {
  ways_.ways.assign(4, in_network);
  for (int i = 0; i < 4; ++i) add();
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2, 3}));
  end(2);  // operation 2 ends out of order, and stays until the earlier operations have ended
  EXPECT_EQ(queue_.first_number(), 0U);
  end(0);
  end(1);
  EXPECT_EQ(queue_.first_number(), 3U);
  EXPECT_EQ(ended_, (Numbers{2, 0, 1}));
}

TEST_F(OperationQueueTest, NoOperationUsesATreeWhileAnotherRunsBetweenTheRanks) {
  ways_.ways = {in_network, fallback, in_network, by_hosts};
  for (int i = 0; i < 4; ++i) add();
  EXPECT_EQ(ways_.begun, (Numbers{0})) << "the second waits for the first";
  end(0);
  EXPECT_EQ(ways_.begun, (Numbers{0, 1})) << "the third waits for the second";
  end(1);
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2, 3}));
}

TEST_F(OperationQueueTest, NothingStartsWhileTheWaysAreClosed) {
  ways_.open = false;
  add();
  EXPECT_EQ(ways_.begun, Numbers{});
  EXPECT_EQ(queue_.started(0), nullptr);
  EXPECT_NE(queue_.find(0), nullptr);
  ways_.open = true;
  queue_.advance();
  EXPECT_EQ(ways_.begun, (Numbers{0}));
  EXPECT_NE(queue_.started(0), nullptr);
}

TEST_F(OperationQueueTest, RemaindersOfALostTreeRunFirstAndInOrder) {
  ways_.ways = {in_network, in_network, in_network, in_network};
  add(), add(), add();
  end(1);
  queue_.leave_tree(*queue_.find(0), {Piece{}, Piece{}});
  queue_.leave_tree(*queue_.find(2), {});
  add();  // a call between the loss and run_remainders()
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2}));
  queue_.run_remainders();
  ASSERT_EQ(ways_.remainders.size(), 1U) << "remainders run one after the other";
  EXPECT_EQ(ways_.remainders[0], (std::pair<std::uint64_t, std::size_t>{0, 2}));
  ways_.busy = false;
  queue_.fallback_ended(*queue_.find(0));
  ASSERT_EQ(ways_.remainders.size(), 2U);
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2})) << "nothing starts before they have ended";
  ways_.busy = false;
  queue_.fallback_ended(*queue_.find(2));
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2, 3}));
}

/// Paths between ranks that hold everything already: each remainder ends at once.
class NothingLeft final : public OperationWays {
 public:
  [[nodiscard]] bool may_begin() const override { return true; }
  [[nodiscard]] Route route_of(const Operation&) const override { return {.way = in_network}; }
  void settle_memory(Operation&) override {}
  void begin(Operation&, const Route&) override {}
  void run_share(Operation&) override {}
  [[nodiscard]] bool shares_busy() const override { return false; }
  void run_remainder(Operation& o, std::span<const Piece>) override { queue.fallback_ended(o); }
  [[nodiscard]] bool fallback_busy() const override { return false; }
  void account(const Operation&, Operation::State, bool) override {}
  void after_end() override {}

  OperationQueue queue{*this, 1};
};

TEST_F(OperationQueueTest, ManyRemaindersThatEndAtOnceNeedNoDeepStack) {
  constexpr std::uint64_t kOperations = 100'000;
  NothingLeft ways;
  std::uint64_t ended = 0;
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    add_operation(ways.queue, now_, [&ended, i](const Status&) { ended += ended == i ? 1U : 0U; });
  }
  for (std::uint64_t i = 0; i < kOperations; ++i) ways.queue.leave_tree(*ways.queue.find(i), {});
  ways.queue.run_remainders();
  EXPECT_EQ(ended, kOperations) << "in their order";
  EXPECT_TRUE(ways.queue.empty());
}

TEST_F(OperationQueueTest, ASplitOperationEndsWithTheLaterOfItsParts) {
  ways_.ways = {in_network, in_network};
  ways_.split = {true, true};
  add(), add();
  EXPECT_EQ(ways_.begun, (Numbers{0, 1})) << "operations on the trees run together";
  EXPECT_EQ(ways_.shares, (Numbers{0})) << "shares between the ranks run one after the other";
  queue_.trees_part_ended(*queue_.find(0));
  EXPECT_EQ(queue_.find(0)->state, in_network);
  ways_.shares_run = false;
  queue_.share_ended(*queue_.find(0));
  EXPECT_EQ(queue_.find(0), nullptr);
  EXPECT_EQ(ways_.shares, (Numbers{0, 1}));
  ways_.shares_run = false;
  queue_.share_ended(*queue_.find(1));
  EXPECT_NE(queue_.find(1), nullptr) << "the trees have not ended their parts";
  queue_.trees_part_ended(*queue_.find(1));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(OperationQueueTest, ALostTreeLeavesOnlyItsOwnPartOfASplit) {
  ways_.ways = {in_network, in_network, fallback};
  ways_.split = {true, true, true};
  add(), add();
  queue_.leave_tree(*queue_.find(0), {Piece{}});
  queue_.leave_tree(*queue_.find(1), {Piece{}});
  add();  // another rank had begun this operation on the lost trees, so this rank splits it, too
  queue_.run_remainders();
  EXPECT_EQ(ways_.remainders.size(), 1U);
  ways_.busy = false;
  queue_.fallback_ended(*queue_.find(0));
  ways_.busy = false;
  queue_.fallback_ended(*queue_.find(1));
  EXPECT_EQ(ways_.begun, (Numbers{0, 1})) << "their shares have not ended";
  for (const std::uint64_t number : {0U, 1U}) {
    ways_.shares_run = false;
    queue_.share_ended(*queue_.find(number));
  }
  EXPECT_EQ(ways_.begun, (Numbers{0, 1, 2}));
  EXPECT_EQ(ways_.shares, (Numbers{0, 1, 2}));
}

TEST_F(OperationQueueTest, AnEndMayStartAndEndTheNext) {
  ways_.open = false;
  for (int i = 0; i < 1000; ++i) add();
  ways_.open = true;
  queue_.advance();
  for (std::uint64_t i = 0; i < 1000; ++i) end(i);
  EXPECT_EQ(ways_.begun.size(), 1000U);
  EXPECT_EQ(ways_.ends, 1000);
}

TEST_F(OperationQueueTest, AFailureEndsAllOperationsAndNamesTheEventThatEachWaitedFor) {
  ways_.ways = {in_network, fallback};
  add(), add();
  auto ends = queue_.fail_all({Errc::peer_gone, "rank 2 is gone"},
                              [](const Operation& o) { return "operation " + std::to_string(o.number); });
  for (auto& [call, status] : ends) call(status);
  EXPECT_EQ(failed_, (Numbers{0, 1}));
  EXPECT_EQ(last_error_, "rank 2 is gone; here operation 1");
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.find(0), nullptr);
}

TEST_F(OperationQueueTest, RemembersTheLast256CallsForInquiries) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    add();
    end(i);
  }
  EXPECT_EQ(queue_.recent(43), nullptr);
  ASSERT_NE(queue_.recent(44), nullptr);
  EXPECT_EQ(queue_.recent(44)->count, 16U);
  EXPECT_EQ(queue_.recent(300), nullptr) << "operation 300 was not called yet";
}

TEST_F(OperationQueueTest, ProgressNeverGoesBack) {
  queue_.touch(now_);
  queue_.touch(now_ - std::chrono::seconds(1));
  EXPECT_EQ(queue_.progress_at(), now_);
}

using OperationQueueDeath = OperationQueueTest;
TEST_F(OperationQueueDeath, AnOperationOutsideOfTreesCannotLeaveATree) {
  add();
  EXPECT_DEATH(queue_.leave_tree(*queue_.find(0), {}), "leaves a tree and is in none");
}

}  // namespace
}  // namespace tributary::client

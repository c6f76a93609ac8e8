// A join may come before the manager's key: the manager may plan trees over an aggregator while its answer to the
// aggregator's registration is still on its way. The join waits for the key.
#include <gmock/gmock.h>

#include "tests/unit/aggregator/worker_rig.h"
#include "tributary/protocol/reason.h"

namespace tributary::aggregator::test {
namespace {

using namespace std::chrono_literals;

class WorkerEarly : public WorkerTest {
 protected:
  WorkerEarly() {
    worker_ = std::make_unique<Worker>(
        transport_, [this](std::span<const std::byte> join) { return verify(join); }, budget_,
        WorkerSettings{.name = "early"});
    listener_ = *transport_.listen({"early", kPort}, *worker_);
    network_.on_due("early", [this] {
      transport_.poll(transport::Duration::zero());
      worker_->tick(transport_.now());
      network_.wake_at("early", transport_.now() + 50ms);
    });
    network_.wake_at("early", transport_.now());
  }
  ~WorkerEarly() override { network_.on_due("early", {}); }

  Result<VerifiedJoin> verify(std::span<const std::byte> join) {
    if (!has_key_) return fail(Errc::retry, Reason::no_key, "there is no key yet");
    return verify_join(verifier_, "early", join, now_s_);
  }
  Child& rank(std::uint16_t child_number, std::uint16_t children) {
    return child("rank" + std::to_string(child_number), {"early", kPort},
                 join_of({claims_of("early", child_number, children)}));
  }
  void expect_waits(const Child& rank) {
    EXPECT_FALSE(rank.ready);
    EXPECT_FALSE(rank.refused) << *rank.refused;
    EXPECT_FALSE(rank.closed) << rank.closed->message;
  }

  bool has_key_ = false;
  transport::Transport& transport_ = network_.transport("early");
  MemoryBudget budget_{64U << 20};
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<transport::Listener> listener_;
};

TEST_F(WorkerEarly, AJoinWaitsForTheManagersKey) {
  Child &first = rank(0, 2), &second = rank(1, 2);
  network_.run_for(2s);
  expect_waits(first);
  expect_waits(second);
  EXPECT_EQ(worker_->metrics().joins_refused, 0U);
  has_key_ = true;
  EXPECT_TRUE(run_until([&] { return first.ready && second.ready; }, 200ms));
  EXPECT_EQ(worker_->metrics().joins_accepted, 2U);
}

TEST_F(WorkerEarly, FramesBehindTheJoinWaitToo) {
  Child& only = rank(0, 1);
  only.contribute(0, kSum, bytes_of(floats(0, 16)));
  network_.run_for(1s);
  expect_waits(only);
  has_key_ = true;
  EXPECT_TRUE(run_until([&] { return only.results.size() == 1; }, 500ms)) << only.closed.value_or(Error{}).message;
}

TEST_F(WorkerEarly, IsRefusedWithTheReasonIfNoKeyComes) {
  Child& rank0 = rank(0, 1);
  network_.run_for(2900ms);
  expect_waits(rank0);
  EXPECT_TRUE(run_until([&] { return rank0.refused.has_value(); }, 300ms));
  EXPECT_EQ(rank0.refused, "there is no key yet [no-key]");
  EXPECT_EQ(worker_->metrics().reasons.of(Reason::no_key), 1U);
  EXPECT_TRUE(run_until([&] { return worker_->sessions() == 0; }));
}

TEST_F(WorkerEarly, AForgedJoinIsRefusedWhenTheKeyComes) {
  Bytes forged = join_of({claims_of("early", 0, 1)});
  forged[200] ^= std::byte{1};
  Child& stranger = child("stranger", {"early", kPort}, forged);
  network_.run_for(1s);
  expect_waits(stranger);
  has_key_ = true;
  EXPECT_TRUE(run_until([&] { return stranger.refused.has_value(); }, 200ms));
  EXPECT_EQ(worker_->metrics().reasons.of(Reason::join_token_forged), 1U);
}

TEST_F(WorkerEarly, AChildThatLeavesMeanwhileLeavesNothingBehind) {
  rank(0, 1).close();
  network_.run_for(1s);
  has_key_ = true;
  EXPECT_TRUE(run_until([&] { return worker_->sessions() == 0; }));
  EXPECT_EQ(worker_->metrics().joins_accepted, 0U);
  EXPECT_EQ(budget_.in_use(), 0U);
}

}  // namespace
}  // namespace tributary::aggregator::test

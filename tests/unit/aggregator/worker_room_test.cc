// Children may write into memory beside the lanes before they are asked. The worker takes this memory from the same
// budget, and gives it back when the lane ends, for any reason.
#include "tests/unit/aggregator/worker_rig.h"

namespace tributary::aggregator::test {
namespace {

/// A transport over which children write into room made for them, as over RDMA.
class RoomyTransport final : public transport::Transport {
 public:
  explicit RoomyTransport(transport::Transport& inner) : inner_(inner) {}
  Result<std::unique_ptr<transport::Listener>> listen(const Endpoint& at, transport::Acceptor& acceptor) override {
    return inner_.listen(at, acceptor);
  }
  std::unique_ptr<transport::Channel> connect(const Endpoint& to, transport::ChannelHandler& handler,
                                              transport::Duration limit) override {
    return inner_.connect(to, handler, limit);
  }
  std::size_t poll(transport::Duration wait) override { return inner_.poll(wait); }
  transport::TimePoint now() const override { return inner_.now(); }
  void post(std::function<void()> call) override { inner_.post(std::move(call)); }
  std::uint64_t room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const override {
    return std::uint64_t{payloads} * (payload_bytes + 64);
  }

 private:
  transport::Transport& inner_;
};

class WorkerRoom : public WorkerTest {
 protected:
  static constexpr std::uint64_t kRoom = kWindow * (kSegmentBytes + 64);  // bytes of room for each child
  static constexpr std::uint64_t lane_bytes(std::uint64_t children) { return kWindow * kSegmentBytes * (children + 1); }

  /// Starts an aggregator whose budget is `bytes`.
  void start(std::uint64_t bytes) {
    budget_ = std::make_unique<MemoryBudget>(bytes);
    worker_ = std::make_unique<Worker>(transport_, verifier_, *budget_, WorkerSettings{.name = "roomy"},
                                       [this] { return now_s_; });
    listener_ = *transport_.listen({"roomy", kPort}, *worker_);
    network_.on_due("roomy", [this] {
      transport_.poll(transport::Duration::zero());
      worker_->tick(transport_.now());
      network_.wake_at("roomy", transport_.now() + std::chrono::milliseconds(50));
    });
  }
  std::vector<Child*> join(std::uint16_t children) {
    std::vector<Child*> all;
    for (std::uint16_t i = 0; i < children; ++i) {
      all.push_back(&child("rank" + std::to_string(i), {"roomy", kPort}, join_of({claims_of("roomy", i, children)})));
    }
    EXPECT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); }));
    return all;
  }
  void expect_nothing_kept() {
    EXPECT_TRUE(run_until([&] { return worker_->sessions() == 0 && worker_->lanes().empty(); }));
    EXPECT_EQ(budget_->in_use(), 0U);
  }

  RoomyTransport transport_{network_.transport("roomy")};
  std::unique_ptr<MemoryBudget> budget_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<transport::Listener> listener_;
};

TEST_F(WorkerRoom, ComesBackWhenTheLaneEnds) {
  start(64U << 20);
  for (int round = 0; round < 3; ++round) {
    const auto ranks = join(3);
    EXPECT_EQ(budget_->in_use(), lane_bytes(3) + 3 * kRoom);
    for (Child* rank : ranks) rank->leave();
    expect_nothing_kept();
    next_epoch();
  }
}

TEST_F(WorkerRoom, ComesBackWhenTheLaneFails) {
  start(64U << 20);
  const auto ranks = join(3);
  EXPECT_EQ(budget_->in_use(), lane_bytes(3) + 3 * kRoom);
  ranks[1]->close();
  expect_nothing_kept();
}

TEST_F(WorkerRoom, ComesBackWhenTheLaneNeverForms) {
  start(64U << 20);
  Child& alone = child("rank0", {"roomy", kPort}, join_of({claims_of("roomy", 0, 3)}));
  settle();
  EXPECT_EQ(budget_->in_use(), lane_bytes(3) + kRoom);
  EXPECT_TRUE(run_until([&] { return alone.failed.has_value(); }, std::chrono::minutes(2)));
  expect_nothing_kept();
}

TEST_F(WorkerRoom, IsNotMadeForAChildThatIsAlone) {
  start(64U << 20);
  join(1);
  EXPECT_EQ(budget_->in_use(), lane_bytes(1));
}

TEST_F(WorkerRoom, IsNotMadeOnceHalfOfTheBudgetIsInUse) {
  start(2 * (lane_bytes(3) + kRoom));
  const auto ranks = join(3);
  EXPECT_EQ(budget_->in_use(), lane_bytes(3) + kRoom)
      << "there is room for the first child, and then no memory for more";
  for (Child* rank : ranks) rank->leave();
  expect_nothing_kept();
}

}  // namespace
}  // namespace tributary::aggregator::test

// A worker and children that share memory: the worker sums contributions in the memory of the children's programs, the
// children read results from the worker's slots, and a buffer that a child has taken back goes into no result.
#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tests/unit/aggregator/child.h"
#include "tributary/transport/shared_memory.h"
#include "tributary/transport/shm.h"

namespace tributary::aggregator::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCount = 4096;
constexpr std::size_t kPayload = kCount * sizeof(float);
constexpr Signature kFloats{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, kCount};

/// A rank's registered buffer, with a place for each segment of the window.
class Registered {
 public:
  explicit Registered(transport::MemoryLender& lender)
      : memory_(*transport::allocate_shared(kWindow * kPayload)),
        lent_(lender.lend(memory_, *transport::find_shared({memory_, kWindow * kPayload}))) {}
  ~Registered() {
    lent_.reset();
    EXPECT_TRUE(transport::free_shared(memory_));
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  std::span<const std::byte> fill(std::uint64_t sequence, const std::vector<float>& values) {
    const std::span place(memory_ + sequence % kWindow * kPayload, kPayload);
    std::memcpy(place.data(), values.data(), kPayload);
    return place;
  }
  void scribble() { std::memset(memory_, 0x7B, kWindow * kPayload); }

 private:
  std::byte* memory_;
  std::unique_ptr<transport::KeptMemory> lent_;
};

class WorkerSharedMemory : public ::testing::Test {
 protected:
  WorkerSharedMemory()
      : key_(*SigningKey::generate()),
        verifier_(*TokenVerifier::create(key_.public_key())),
        worker_(there_, verifier_, budget_, {.name = "here"}, [] { return std::int64_t{1'700'000'000}; }),
        listener_(*there_.listen({"127.0.0.1", 0}, worker_)) {}

  void join(std::uint16_t children) {
    for (std::uint16_t i = 0; i < children; ++i) {
      TokenClaims c = claims_of_rank("here", kEpoch, i, children, 1'700'000'120);
      c.segment_bytes = kPayload;
      children_.push_back(
          std::make_unique<Child>(ranks_, listener_->local(), encode(TokenChain{*key_.sign(c)}), kEpoch));
      buffers_.push_back(std::make_unique<Registered>(ranks_));
    }
    ASSERT_TRUE(run_until([&] { return std::ranges::all_of(children_, [](const auto& c) { return c->ready; }); }));
  }
  bool run_until(const std::function<bool()>& done, transport::Duration limit = 20s) {
    for (const auto end = transport::Clock::now() + limit; !done();) {
      if (transport::Clock::now() > end) return false;
      if (there_.poll({}) + ranks_.poll({}) == 0) there_.poll(100us);
      worker_.tick(transport::Clock::now());
    }
    return true;
  }
  void contribute(std::uint16_t child, std::uint64_t sequence) {
    FrameHeader header;
    header.type = FrameType::contribution;
    header.group = kGroup;
    header.epoch = kEpoch;
    header.sequence = header.operation = sequence;
    header.flags = frame_flags::kWantsResult;
    header.set_signature(kFloats);
    ASSERT_TRUE(
        children_[child]->channel().send(header, buffers_[child]->fill(sequence, floats(child, kCount, sequence)), 0));
  }
  void reduce(std::uint64_t sequence) {
    std::vector<std::vector<float>> inputs;
    for (std::size_t child = 0; child < children_.size(); ++child) {
      const auto i = static_cast<std::uint16_t>(child);
      contribute(i, sequence);
      inputs.push_back(floats(i, kCount, sequence));
    }
    const Bytes sum = bytes_of(sum_of(inputs));
    for (const auto& child : children_) {
      ASSERT_TRUE(run_until([&] { return child->result_of(sequence) != nullptr; }));
      ASSERT_EQ(child->result_of(sequence)->payload, sum) << sequence;
    }
  }

  SigningKey key_;
  TokenVerifier verifier_;
  transport::ShmTransport there_, ranks_;
  MemoryBudget budget_{64U << 20};
  Worker worker_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<std::unique_ptr<Registered>> buffers_;
  std::vector<std::unique_ptr<Child>> children_;  // destroyed first
};

TEST_F(WorkerSharedMemory, SumsContributionsWhereTheyAreAndLetsResultsBeReadWhereTheyAre) {
  join(3);
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) reduce(sequence);
  EXPECT_GE(ranks_.statistics().frames_named, 3U * 35) << "only the first contribution of each child is copied";
  EXPECT_GE(there_.statistics().frames_in_place, 3U * 35);
  EXPECT_GE(there_.statistics().frames_named, 3U * 35) << "children read results in place";
  EXPECT_EQ(there_.statistics().regions_mapped, 3U);
  for (const auto& child : children_) child->leave();
  ASSERT_TRUE(run_until([&] { return worker_.sessions() == 0 && budget_.in_use() == 0; }));
  EXPECT_EQ(worker_.metrics().lanes_ended, 1U);
}

TEST_F(WorkerSharedMemory, SumsTakeTurnsInBuffersBecauseChildrenReadThemThere) {
  join(2);
  reduce(0);  // the first result is copied
  children_[0]->reads_in_place = true;
  for (std::uint64_t sequence = 1; sequence <= kWindow; ++sequence) reduce(sequence);
  const std::vector<const std::byte*>& read_at = children_[0]->read_at;
  ASSERT_EQ(read_at.size(), kWindow);
  EXPECT_EQ(std::set(read_at.begin(), read_at.end()).size(), kWindow) << "each sum has another place";
}

TEST_F(WorkerSharedMemory, ABufferThatAChildHasTakenBackIsInNoResult) {
  join(2);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) reduce(sequence);
  const std::uint64_t contributions = worker_.metrics().contributions;
  contribute(0, 4);
  ASSERT_TRUE(run_until([&] { return worker_.metrics().contributions == contributions + 1; }));
  // Leave no event that the worker would see before the next contribution.
  for (int i = 0; i < 10; ++i) there_.poll({});
  contribute(1, 4);
  ranks_.poll({});
  children_[0]->close();
  buffers_[0]->scribble();  // the buffer belongs to the program again
  ASSERT_TRUE(run_until([&] { return children_[1]->failed || children_[1]->result_of(4) != nullptr; }));
  EXPECT_EQ(children_[1]->result_of(4), nullptr);
  EXPECT_TRUE(children_[1]->failed.has_value());
  children_.clear();
  ASSERT_TRUE(run_until([&] { return worker_.sessions() == 0 && budget_.in_use() == 0; }));
}

}  // namespace
}  // namespace tributary::aggregator::test

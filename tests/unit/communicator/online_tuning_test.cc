// Rank 0's corrections of the policy: which times of an operation count, and what the copies of GPUs change.
#include "client/communicator/online_tuning.h"

#include "client/tuning/policy.h"
#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

constexpr PathRates kNarrow{.links = 10'000'000'000, .trees = 9'000'000'000, .ranks = 10'000'000'000};

/// Buffers in front of a GPU whose copies run at 4 GB/s.
class FakeStaging final : public StagedMemory {
 public:
  explicit FakeStaging(std::size_t left, double rate = 4000) : left_(left), rate_(rate) {}
  [[nodiscard]] bool input_ready(const std::byte*) const noexcept override { return true; }
  [[nodiscard]] bool input_whole() const noexcept override { return true; }
  void result_landed(std::span<const std::byte>) override {}
  [[nodiscard]] double copy_rate() const noexcept override { return rate_; }
  [[nodiscard]] std::size_t result_left() const noexcept override { return left_; }

 private:
  const std::size_t left_;
  const double rate_;
};

Operation operation_of(std::uint64_t number, std::uint64_t bytes) {
  Operation o;
  o.number = number;
  o.signature = {Collective::all_reduce, DType::float32, ReduceOp::sum, 0, bytes / 4};
  return o;
}

TEST(OnlineTimes, CountTheCopiesOfAGpuBeforeTheBeginAndAfterTheEnd) {
  const transport::TimePoint called(1h);
  Operation o = operation_of(3, 8 << 20);
  o.called_at = called;
  o.started_at = called + 2ms;  // the input came down until then
  const auto plain = times_of(o, Operation::State::fallback, 4, {}, called + 10ms);
  EXPECT_DOUBLE_EQ(plain.time_us, 8000);
  o.staged = std::make_shared<FakeStaging>(4 << 20);
  const auto staged = times_of(o, Operation::State::fallback, 4, {}, called + 10ms);
  EXPECT_DOUBLE_EQ(staged.time_us, 10'000 + (4 << 20) / 4000.0);
  EXPECT_DOUBLE_EQ(staged.latency_us, staged.time_us);
  const auto behind = times_of(o, Operation::State::fallback, 4, {.operation = called + 5ms}, called + 10ms);
  EXPECT_DOUBLE_EQ(behind.time_us, 5000 + (4 << 20) / 4000.0) << "the copies overlap with the operation before";
}

class OnlineCopies : public PartTest {
 protected:
  OnlineCopies() : PartTest(0, 8) {
    begin();
    const tuning::GroupShape group{.ranks = 8, .link_rate = kNarrow.links};
    const tuning::TreeShape trees{.rates = kNarrow, .levels = 1, .segment_bytes = 32 << 10};
    shared_.info.figures = tuning::with_trees(tuning::default_figures(group, 8), trees);
    online_.begin(*shared_.info.figures, tuning::model_policy(*shared_.info.figures, 8));
  }
  void end(double rate, std::uint64_t bytes = 64 << 20, Operation::State way = Operation::State::in_network) {
    network_.run_for(11s);
    Operation o = operation_of(next_++, bytes);
    o.called_at = o.started_at = shared_.transport.now();
    o.trees_ended_at = o.started_at;
    o.staged = std::make_shared<FakeStaging>(0, rate);
    online_.begun();
    online_.left();
    online_.ended(o, way);
  }

  std::vector<std::string> amendments_;
  OnlineTuning online_{shared_, [this](std::string text) {
                         amendments_.push_back(std::move(text));
                         return true;
                       }};
  std::uint64_t next_ = 0;
};

TEST_F(OnlineCopies, TheirRateIsAFigureOfTheModel) {
  end(0);
  EXPECT_EQ(shared_.info.figures->staging_gbytes, 0) << "no copy has been measured yet";
  end(4000);
  EXPECT_DOUBLE_EQ(shared_.info.figures->staging_gbytes, 4);
  EXPECT_DOUBLE_EQ(shared_.staging_gbytes, 4);
  end(5000);
  EXPECT_DOUBLE_EQ(shared_.staging_gbytes, 4) << "the rate varies, and the model need not choose again";
  end(12'000, 64 << 10);
  EXPECT_DOUBLE_EQ(shared_.staging_gbytes, 4) << "short operations are staged in any case";
  end(12'000, 64 << 20, Operation::State::fallback);
  EXPECT_DOUBLE_EQ(shared_.staging_gbytes, 4) << "between the ranks all operations are staged";
  end(12'000);
  EXPECT_DOUBLE_EQ(shared_.staging_gbytes, 12);
}

}  // namespace
}  // namespace tributary::client

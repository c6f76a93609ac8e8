// A long exact sum between the ranks runs as two strands if each rank's part has 64 KiB or more. Its bits are those of
// one strand: the exact sum, rounded once.
#include <array>
#include <random>

#include "client/collectives/fallback/runner.h"
#include "tests/unit/communicator/scripted_peers.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {
namespace {

constexpr std::uint64_t kPartBytes = 65'536;

/// Ranks whose frames the test carries from one to another.
class Ranks {
 public:
  explicit Ranks(std::uint32_t count) {
    for (std::uint32_t rank = 0; rank < count; ++rank)
      ranks_.push_back(std::make_unique<Rank>(rank, count, network_.transport("rank " + std::to_string(rank))));
    for (std::uint32_t low = 0; low < count; ++low) {
      for (std::uint32_t high = low + 1; high < count; ++high) connect(low, high);
    }
  }

  /// Returns every rank's result.
  template <class T>
  std::vector<std::vector<T>> all_reduce(DType dtype, ReduceOp op, const std::vector<std::vector<T>>& inputs) {
    const std::size_t count = inputs[0].size();
    std::vector<std::vector<T>> results(ranks_.size(), std::vector<T>(count));
    std::vector<Operation> operations(ranks_.size());
    std::size_t running = ranks_.size();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Operation& o = operations[rank];
      o.number = 7;
      o.signature = {.collective = Collective::all_reduce, .dtype = dtype, .op = op, .root = 0, .count = count};
      o.send = reinterpret_cast<const std::byte*>(inputs[rank].data());
      o.recv = reinterpret_cast<std::byte*>(results[rank].data());
      ranks_[rank]->runner.run(o, std::array{whole(o)}, [&running] { --running; });
    }
    for (int turn = 0; turn < 1000 && running > 0; ++turn) carry();
    EXPECT_EQ(running, 0U) << "the ranks wait for each other";
    for (const auto& rank : ranks_) rank->runner.stop();
    return results;
  }
  [[nodiscard]] std::uint64_t rounds_started() const { return ranks_[0]->runner.rounds_started(); }

 private:
  struct Rank final : PeerLinkUser {
    Rank(std::uint32_t rank, std::uint32_t count, transport::Transport& transport)
        : directory(rank, count),
          mesh({.first = transport}, directory, rank, Secret{}, std::chrono::seconds(1)),
          runner(mesh, PeerClass::collective, rank, count, policy, nullptr, {}) {
      mesh.set_user(PeerClass::collective, *this);
    }
    void peer_received(std::uint32_t peer, PeerClass, const PostedReceive& receive,
                       std::span<std::byte> payload) override {
      runner.received(peer, receive, payload);
    }
    void peer_sent(std::uint32_t, PeerClass, std::uint64_t cookie) override { runner.sent(cookie); }
    void peer_failed(std::uint32_t peer, PeerClass, const std::string& reason) override {
      ADD_FAILURE() << "rank " << peer << ": " << reason;
    }
    void peer_mismatch(std::uint32_t peer, PeerClass, const PostedReceive& expected, const FrameHeader& came) override {
      ADD_FAILURE() << "rank " << peer << " sent frame " << came.sequence << " in place of " << expected.tag;
    }

    Directory directory;
    PeerMesh mesh;
    const tuning::Policy policy;
    FallbackRunner runner;
  };

  void connect(std::uint32_t low, std::uint32_t high) {
    auto at_low = std::make_unique<ScriptedChannel>(), at_high = std::make_unique<ScriptedChannel>();
    wires_.emplace_back(at_low.get(), at_high.get());
    wires_.emplace_back(at_high.get(), at_low.get());
    PeerLink& link = ranks_[high]->mesh.link(PeerClass::collective, low);
    at_high->handler = &link;
    link.adopt(std::move(at_high));
    ScriptedChannel* const accepted = at_low.get();
    std::unique_ptr<transport::Channel> channel = std::move(at_low);
    accepted->handler = ranks_[low]->mesh.accept(PeerClass::collective, high, {}, channel).handler;
  }
  void carry() {
    for (const auto& [from, to] : wires_) {
      for (; !from->sent.empty(); from->sent.pop_front()) to->comes(std::move(from->sent.front()));
      from->run();
    }
  }

  transport::SimNetwork network_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::pair<ScriptedChannel*, ScriptedChannel*>> wires_;  // from, to
};

/// Returns values whose rounded partial sums would show: they lie up to 30 binary places apart.
template <class T>
std::vector<std::vector<T>> values(std::uint32_t ranks, std::uint64_t count) {
  std::mt19937_64 random(count * 31 + ranks);
  std::uniform_real_distribution<double> mantissa(0.5, 1);
  std::uniform_int_distribution<int> exponent(-15, 15);
  std::vector<std::vector<T>> inputs(ranks, std::vector<T>(count));
  for (auto& input : inputs) {
    for (T& value : input)
      value = static_cast<T>(std::ldexp(random() % 2 == 0 ? mantissa(random) : -mantissa(random), exponent(random)));
  }
  return inputs;
}

/// Returns the exact sum, rounded once: a long double has room for the exact sum of up to 8 such floats, and the sum of
/// two numbers is always rounded once.
template <class T>
std::vector<T> sum_of(const std::vector<std::vector<T>>& inputs) {
  std::vector<T> sums(inputs[0].size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    long double sum = 0;
    for (const auto& input : inputs) sum += input[i];
    sums[i] = inputs.size() == 2 ? inputs[0][i] + inputs[1][i] : static_cast<T>(sum);
  }
  return sums;
}

/// Returns the counts around the least one with two strands, and larger ones whose halves and parts have remainders.
template <class T>
std::vector<std::uint64_t> counts_around_two_strands(std::uint32_t ranks) {
  const std::uint64_t least = kPartBytes * ranks / sizeof(T);
  return {least - 2, least - 1, least, least + 1, least + 2, least + ranks, 2 * least + 1, 2 * least + 2 * ranks + 3};
}

template <class T>
void expect_exact_sums(DType dtype, std::uint32_t count_of_ranks) {
  Ranks ranks(count_of_ranks);
  const std::uint64_t least = kPartBytes * count_of_ranks / sizeof(T);
  std::uint64_t rounds_of_one = 0;
  for (const std::uint64_t count : counts_around_two_strands<T>(count_of_ranks)) {
    SCOPED_TRACE(std::to_string(count) + " elements of " + std::to_string(count_of_ranks) + " ranks");
    const auto inputs = values<T>(count_of_ranks, count);
    const auto expected = sum_of(inputs);
    for (const auto& result : ranks.all_reduce(dtype, kExactSum, inputs))
      EXPECT_EQ(std::memcmp(result.data(), expected.data(), count * sizeof(T)), 0);
    if (count < least) rounds_of_one = ranks.rounds_started();
    EXPECT_EQ(ranks.rounds_started(), rounds_of_one * (count < least ? 1 : 2)) << "strands";
  }
}

TEST(TwoStrands, HaveTheBitsOfOneStrandBetweenTwoRanks) {
  expect_exact_sums<float>(DType::float32, 2);
  expect_exact_sums<double>(DType::float64, 2);
}

TEST(TwoStrands, HaveTheBitsOfOneStrandBetweenSeveralRanks) {
  for (const std::uint32_t ranks : {3U, 5U, 8U}) expect_exact_sums<float>(DType::float32, ranks);
}

TEST(TwoStrands, DivideTheSumOfAnAverage) {
  const auto inputs = values<float>(4, kPartBytes + 1);
  auto expected = sum_of(inputs);
  for (float& value : expected) value /= 4;  // no value is so small that this rounds
  for (const auto& result : Ranks(4).all_reduce(DType::float32, kExactAverage, inputs)) EXPECT_EQ(result, expected);
}

TEST(TwoStrands, MultiplyInTheOrderOfTheRanks) {
  const auto inputs = values<float>(2, kPartBytes / 2 + 1);
  std::vector<float> expected(inputs[0].size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = inputs[0][i] * inputs[1][i];
  for (const auto& result : Ranks(2).all_reduce(DType::float32, kOrderedProduct, inputs)) EXPECT_EQ(result, expected);
}

// The control: partial sums that are rounded give other bits, so the tests above see them.
TEST(TwoStrands, WouldShowRoundedPartialSums) {
  const auto inputs = values<float>(3, 1000);
  const auto expected = sum_of(inputs);
  std::size_t different = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    different += static_cast<std::size_t>((inputs[0][i] + inputs[1][i]) + inputs[2][i] != expected[i]);
  EXPECT_GT(different, 50U);
}

}  // namespace
}  // namespace tributary::client

// Many senders share one port, whose queue marks packets and overflows. They use the port's whole rate, in equal
// shares, and none starves.
#include <cstdio>

#include "tests/unit/packet/ends.h"
#include "transport/packet/congestion.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kReceiver = 1;
constexpr std::size_t kFrameBytes = 1280;  // fits into one packet with its header

/// Lets hosts 2, 3, ... send to host 1.
class Bottleneck {
 public:
  Bottleneck(std::uint64_t seed, const LinkSettings& link, PacketSettings settings = {})
      : network_(seed, link), settings_(settings) {
    settings_.seed = seed;
    settings_.frames_queued_max = 2048;
    transports_.push_back(std::make_unique<PacketTransport>(network_.opener(kReceiver), settings_, network_.time()));
    listener_ = transports_[0]->listen({SimPackets::host(kReceiver), 0}, sinks).value();
  }
  std::size_t add() {
    settings_.seed += 1;
    const auto number = static_cast<std::uint8_t>(transports_.size() + 1);
    transports_.push_back(std::make_unique<PacketTransport>(network_.opener(number), settings_, network_.time()));
    sources.push_back(std::make_unique<Source>(kFrameBytes));
    sources.back()->channel = transports_.back()->connect(listener_->local(), *sources.back(), 20s);
    const std::size_t before = sinks.all.size();
    EXPECT_TRUE(run([&] { return sinks.all.size() > before; }, 1s));
    return before;
  }
  bool run(const std::function<bool()>& done, Duration limit) {
    std::vector<PacketTransport*> all;
    for (const auto& transport : transports_) all.push_back(transport.get());
    return network_.run_until(all, done, limit);
  }
  /// Returns the bytes per second that each sink gets during `time`.
  std::vector<double> rates(Duration time) {
    std::vector<std::uint64_t> before;
    for (const auto& sink : sinks.all) before.push_back(sink->bytes);
    run([] { return false; }, time);
    std::vector<double> rates;
    for (std::size_t i = 0; i < before.size(); ++i) {
      rates.push_back(static_cast<double>(sinks.all[i]->bytes - before[i]) /
                      std::chrono::duration<double>(time).count());
    }
    return rates;
  }
  [[nodiscard]] SimPackets& network() noexcept { return network_; }
  PacketStatistics statistics(std::size_t which) const { return transports_[which]->statistics(); }

 private:
  SimPackets network_;  // first, because the channels' ports are in it

 public:
  Sinks sinks;
  std::vector<std::unique_ptr<Source>> sources;

 private:
  PacketSettings settings_;
  std::vector<std::unique_ptr<PacketTransport>> transports_;
  std::unique_ptr<Listener> listener_;
};

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

constexpr double kRate = 1.25e8;  // 1 Gbit/s
constexpr double kGoodput = kRate * kFrameBytes / (kFrameBytes + 128);

class SharesFairly : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(SharesFairly, AndUsesTheWholePort) {
  const auto [senders, mark_bytes] = GetParam();
  Bottleneck net(11, {.bytes_per_second = kRate, .queue_bytes = 400'000, .mark_bytes = mark_bytes});
  for (int i = 0; i < senders; ++i) net.add();
  net.rates(300ms);
  const auto rates = net.rates(300ms);
  std::printf("%d senders: %.0f %% of the port, fairness %.3f, queue %zu bytes, %llu dropped\n", senders,
              100 * sum(rates) / kGoodput, fairness(rates), net.network().queued(kReceiver),
              static_cast<unsigned long long>(net.network().counts().dropped));
  EXPECT_GT(sum(rates), 0.85 * kGoodput);
  EXPECT_GT(fairness(rates), 0.9);
}

INSTANTIATE_TEST_SUITE_P(ByDelay, SharesFairly,
                         ::testing::Combine(::testing::Values(1, 2, 4, 8), ::testing::Values(SIZE_MAX)));
INSTANTIATE_TEST_SUITE_P(ByMarks, SharesFairly,
                         ::testing::Combine(::testing::Values(1, 2, 4, 8), ::testing::Values(std::size_t{30'000})));

TEST(Congestion, ConvergesWhenSendersComeAndGo) {
  Bottleneck net(12, {.bytes_per_second = kRate, .queue_bytes = 400'000, .mark_bytes = 60'000});
  net.add();
  net.rates(100ms);
  const auto alone = net.rates(100ms);
  net.add();
  net.rates(200ms);
  const auto two = net.rates(100ms);
  net.add();
  net.add();
  net.rates(200ms);
  const auto four = net.rates(200ms);
  for (int i = 0; i < 3; ++i) net.sources[static_cast<std::size_t>(i)]->channel->close();
  net.rates(100ms);
  const auto last = net.rates(100ms);
  EXPECT_GT(alone[0], 0.85 * kGoodput);
  EXPECT_GT(fairness(two), 0.9) << two[0] << " " << two[1];
  EXPECT_GT(fairness(four), 0.85);
  EXPECT_GT(last[3], 0.85 * kGoodput) << "the rest uses the bandwidth that the others leave";
}

TEST(Congestion, SixtyFourSendersIntoOnePortNeitherCollapseNorStarve) {
  Bottleneck net(13, {.bytes_per_second = kRate, .queue_bytes = 150'000, .mark_bytes = 40'000});
  for (int i = 0; i < 64; ++i) net.add();
  net.rates(300ms);
  const auto dropped = net.network().counts().dropped;
  const auto rates = net.rates(600ms);
  const auto [least, most] = std::ranges::minmax(rates);
  std::printf(
      "64 senders: %.0f %% of the port, fairness %.3f, least %.2f and most %.2f of a fair share, %llu dropped\n",
      100 * sum(rates) / kGoodput, fairness(rates), least * 64 / sum(rates), most * 64 / sum(rates),
      static_cast<unsigned long long>(net.network().counts().dropped - dropped));
  EXPECT_GT(sum(rates), 0.8 * kGoodput) << "the rate does not collapse";
  EXPECT_GT(least * 64 / sum(rates), 0.5) << "nobody starves";
  EXPECT_GT(fairness(rates), 0.8);
}

// A group moves at the pace of its slowest child, and all children send the same segments. So groups share fairly if
// their children do, whatever their number. The small group starts first, and has the whole port until the other group
// comes.
TEST(Congestion, AGroupOfFourAndOneOfThirtyTwoMakeTheSameProgress) {
  constexpr std::size_t kSmall = 4, kLarge = 32;
  Bottleneck net(14, {.bytes_per_second = kRate, .queue_bytes = 200'000, .mark_bytes = 40'000});
  for (std::size_t i = 0; i < kSmall; ++i) net.add();
  net.rates(100ms);
  for (std::size_t i = 0; i < kLarge; ++i) net.add();
  net.rates(400ms);
  const auto rates = net.rates(600ms);
  const std::span all(rates);
  const auto mean = [](std::span<const double> of) {
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
  };
  const double small = mean(all.first(kSmall)), large = mean(all.subspan(kSmall));
  std::printf("a child of the small group gets %.2f of what one of the large group gets; %.0f %% of the port\n",
              small / large, 100 * sum(rates) / kGoodput);
  EXPECT_GT(sum(rates), 0.8 * kGoodput);
  EXPECT_GT(small / large, 0.75);
  EXPECT_LT(small / large, 1.33);
}

TEST(Congestion, ForgetsOldMarksCompletely) {
  Congestion congestion{CongestionSettings{}};
  constexpr Duration kRoundTrip = 100us;
  TimePoint now{1h};
  for (int i = 0; i < 1000; ++i) congestion.acknowledged(1, 0, 10us, false, now += kRoundTrip, kRoundTrip);
  EXPECT_EQ(congestion.marked_share(), 0) << "a very small share becomes 0";
  congestion.acknowledged(10, 10, 10us, false, now += kRoundTrip, kRoundTrip);
  EXPECT_DOUBLE_EQ(congestion.marked_share(), 1.0 / 16);
}

TEST(Congestion, BeginsWithASmallWindow) {
  Bottleneck net(14, {.bytes_per_second = kRate, .latency = 5ms});
  net.add();
  net.run([] { return false; }, 12ms);
  EXPECT_LE(net.network().counts().sent, 60U)
      << "two round trips take ten and twenty packets, and as many acknowledgements";
}

TEST(Congestion, APathThatTakesLongerThanTheTargetIsStillUsed) {
  for (const Duration latency : {Duration(400us), Duration(1ms), Duration(3ms)}) {
    Bottleneck net(16, {.bytes_per_second = kRate, .latency = latency});
    net.add();
    net.rates(1500ms);
    const auto rates = net.rates(500ms);
    std::printf("%.1f ms there and back: %.0f %% of the port\n", 2e3 * std::chrono::duration<double>(latency).count(),
                100 * rates[0] / kGoodput);
    EXPECT_GT(rates[0], 0.4 * kGoodput);
  }
}

TEST(Congestion, LossOfTheLinkIsNotTakenForAFullPort) {
  for (const auto& [lost, least] : {std::pair{1U, 0.8}, {10U, 0.6}, {50U, 0.25}, {100U, 0.1}}) {
    Bottleneck net(15, {.bytes_per_second = kRate, .latency = 50us, .lost = lost});
    net.add();
    net.rates(300ms);
    const auto rates = net.rates(500ms);
    std::printf("%.1f %% lost: %.0f %% of the port\n", lost / 10.0, 100 * rates[0] / kGoodput);
    EXPECT_GT(rates[0], least * kGoodput) << lost;
  }
}

}  // namespace
}  // namespace tributary::transport::packet::test

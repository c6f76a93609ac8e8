#include "tests/fuzz/client/lied_to.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>

#include "tests/fuzz/client/liar.h"
#include "tests/simulation/cluster/cluster.h"

namespace tributary::fuzz {

using namespace std::chrono_literals;
using simulation::Cluster;
using simulation::ClusterSettings;

namespace {

constexpr std::uint32_t kRanks = 3;
constexpr auto kTimeout = 1s;
constexpr auto kLimit = 12s;  // each call, and the meeting, may take this much longer than the time-out

/// Messages between the ranks, all at once: without tags, with tags, and one for a receive from any rank.
class Talk {
 public:
  void begin(Cluster& cluster, std::uint32_t rank) {
    constexpr std::uint32_t kAny = 3;
    auto& communicator = cluster.groups()[0][rank]->communicator();
    for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
      for (const std::size_t bytes : {std::size_t{100}, std::size_t{0}, std::size_t{300'000}}) {
        for (const std::uint32_t tag : {0U, 7U}) {
          communicator.send_message(peer, message(true, bytes, tag));
          communicator.receive_message(peer, message(false, bytes, tag));
        }
      }
      communicator.send_message(peer, message(true, 10, kAny));
      communicator.receive_message(std::nullopt, message(false, 10, kAny));
    }
  }

 private:
  client::Message message(bool sends, std::size_t bytes, std::uint32_t tag) {
    auto& memory = memory_.emplace_back(std::make_unique<std::byte[]>(bytes));
    return {.sends = sends,
            .send = sends ? memory.get() : nullptr,
            .recv = sends ? nullptr : memory.get(),
            .count = bytes,
            .tag = tag,
            .on_done = [](const Status&) {}};
  }

  std::deque<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace

void play_lied_to(std::span<const std::uint8_t> input, const std::string& liar,
                  const std::function<bool(FrameType)>& about, const LiedToSettings& settings) {
  Script script(input);
  Talk talk;
  ClusterSettings s;
  s.seed = 1 + script.byte() % 4;
  s.aggregators = settings.aggregators;
  s.window = 2;
  s.segment_bytes = 256;
  s.timeout = kTimeout;
  s.path = settings.path;
  const std::uint8_t killed_after = settings.kill_an_aggregator ? script.byte() : std::uint8_t{0};
  s.devices = settings.lose_a_device;
  const std::uint8_t lost_after = settings.lose_a_device ? script.byte() : std::uint8_t{0};
  Liar lies(script, about);
  std::deque<LyingTransport> lying;
  s.in_between = [&](const std::string& host, transport::Transport& network) -> transport::Transport* {
    return host == liar || host == simulation::device_of(liar) ? &lying.emplace_back(network, lies) : nullptr;
  };
  Cluster cluster(s);
  cluster.add_group(kRanks, 2, {.calls = 6, .count_max = 600});
  if (killed_after > 0) {
    // The manager answers after a millisecond; all work ends soon after that.
    cluster.network().call_at(cluster.network().now() + 1ms + killed_after * 2us,
                              [&cluster] { cluster.aggregators().front()->kill(); });
  }
  if (lost_after > 0) {
    cluster.network().call_at(cluster.network().now() + lost_after * 5us,
                              [&cluster, lost_after] { cluster.groups()[0][lost_after % kRanks]->lose_device(false); });
  }
  std::array<bool, kRanks> talked{};
  const auto over = [&] {
    const auto& ranks = cluster.groups()[0];
    for (std::uint32_t rank = 0; settings.talk && rank < kRanks; ++rank) {
      if (ranks[rank]->communicator().ready() && !std::exchange(talked[rank], true)) talk.begin(cluster, rank);
    }
    return std::ranges::all_of(ranks, [](const auto& rank) { return rank->done(); });
  };
  cluster.network().run_until(over, cluster.network().now() + kLimit);
  for (const auto& rank : cluster.groups()[0]) {
    if (rank->done() || rank->host() == liar) continue;
    std::fprintf(stderr, "an honest rank hangs:\n%s", cluster.describe().c_str());
    std::abort();
  }
}

}  // namespace tributary::fuzz

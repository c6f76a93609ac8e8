// Messages between the ranks of a cluster: tags in any order, receives from any rank, and the outcome when a rank or
// its device is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kTags = 6;  // from 0 on
constexpr std::uint64_t kEach = 3;  // number of messages of each pair of ranks with each tag

std::byte byte_of(std::uint32_t from, std::uint32_t to, std::uint32_t tag, std::uint64_t number, std::size_t at) {
  return static_cast<std::byte>(from * 101 + to * 37 + tag * 59 + number * 31 + at * 7 + at / 251);
}

/// Every rank sends to every rank, itself included, with every tag. The order and the times of sends and receives come
/// from the seed. Receives with some tags are from any rank.
class Exchange {
 public:
  Exchange(Cluster& cluster, std::uint32_t any_tags) : cluster_(cluster), any_tags_(any_tags) {
    // No rank makes its collective calls before all messages have begun, because it finalizes after its last call.
    for (auto& rank : ranks()) rank->outstanding_max = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      std::vector<Step> steps;
      for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
        for (std::uint32_t tag = 0; tag < kTags; ++tag) {
          steps.insert(steps.end(), kEach, {true, peer, tag});
          steps.insert(steps.end(), kEach, {false, peer, tag});
        }
      }
      std::ranges::shuffle(steps, cluster.random());
      plan(rank, std::move(steps));
    }
  }
  [[nodiscard]] bool all_called() const { return called_ == 2 * kRanks * kRanks * kTags * kEach; }
  [[nodiscard]] bool all_ended() const { return all_called() && ended_ == called_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  struct Step {
    bool sends;
    std::uint32_t peer, tag;
  };
  using Pair = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // from, to, tag
  std::vector<std::unique_ptr<SimRank>>& ranks() { return cluster_.groups()[0]; }
  static std::size_t bytes_of(std::uint32_t tag) {
    constexpr std::array<std::size_t, kTags> kBytes{700, 1, 4096, 0, 300'000, 5000};
    return kBytes[tag];
  }

  void plan(std::uint32_t rank, std::vector<Step> steps) {
    auto at = cluster_.network().now() + 5ms;
    for (const Step& step : steps) {
      at += std::chrono::microseconds(cluster_.below(50));
      cluster_.network().call_at(at, [this, rank, step] { call(rank, step); });
    }
  }
  void call(std::uint32_t rank, const Step& step) {
    ++called_;
    if (all_called()) {
      for (auto& one : ranks()) one->outstanding_max = 4;
    }
    if (!ranks()[rank]->alive()) {
      ++ended_;
      return;
    }
    step.sends ? send(rank, step) : receive(rank, step);
  }
  void send(std::uint32_t rank, const Step& step) {
    const std::uint64_t number = sent_[{rank, step.peer, step.tag}]++;
    auto& memory = memory_.emplace_back(bytes_of(step.tag));
    for (std::size_t at = 0; at < memory.size(); ++at) memory[at] = byte_of(rank, step.peer, step.tag, number, at);
    ranks()[rank]->communicator().send_message(
        step.peer, {.sends = true,
                    .send = memory.data(),
                    .count = memory.size(),
                    .tag = step.tag,
                    .on_done = [this, &memory](const Status& status) {
                      end(status);
                      std::ranges::fill(memory, std::byte{0xA5});  // a later read of this memory gets wrong data
                    }});
  }
  void receive(std::uint32_t rank, const Step& step) {
    struct Call {
      std::vector<std::byte> memory;
      std::uint32_t from = UINT32_MAX;
      std::uint64_t number = 0;
    };
    const auto call = std::make_shared<Call>(Call{.memory = std::vector(bytes_of(step.tag), std::byte{0x5A})});
    const bool any = (any_tags_ >> step.tag & 1U) != 0;
    ranks()[rank]->communicator().receive_message(
        any ? std::nullopt : std::optional(step.peer),
        {.recv = call->memory.data(),
         .count = call->memory.size(),
         .tag = step.tag,
         .on_done =
             [this, rank, step, call, any](const Status& status) {
               end(status);
               if (!status) return;
               std::size_t wrong = call->from == UINT32_MAX || (!any && call->from != step.peer) ? 1 : 0;
               for (std::size_t at = 0; at < call->memory.size(); ++at)
                 wrong += call->memory[at] != byte_of(call->from, rank, step.tag, call->number, at) ? 1U : 0U;
               if (wrong > 0)
                 wrong_ = "rank " + std::to_string(rank) + " with tag " + std::to_string(step.tag) + ", message " +
                          std::to_string(call->number) + " of rank " + std::to_string(call->from);
             },
         // Receives get the messages of one pair and tag in the order of the sends.
         .on_source =
             [this, rank, step, call](std::uint32_t from) {
               call->from = from;
               call->number = received_[{from, rank, step.tag}]++;
             }});
  }
  void end(const Status& status) {
    ++ended_;
    failed_ += status ? 0U : 1U;
  }

  Cluster& cluster_;
  const std::uint32_t any_tags_;  // if bit t is set, receives with tag t are from any rank
  std::deque<std::vector<std::byte>> memory_;
  std::map<Pair, std::uint64_t> sent_, received_;
  std::uint64_t called_ = 0, ended_ = 0, failed_ = 0;
  std::string wrong_;
};

ClusterSettings settings_of(std::uint64_t seed, bool devices) {
  ClusterSettings settings{.seed = seed, .devices = devices, .path = client::PathMode::fallback};
  settings.network.split_percent = 70;
  settings.network.link.jitter = 40us;
  if (devices) settings.network.early_sent_percent = static_cast<std::uint32_t>(seed % 4 * 30);
  return settings;
}

constexpr std::array<std::uint32_t, 4> kAnyTags{0b000000, 0b111111, 0b010101, 0b101010};

void expect_all_right(Cluster& cluster, const Exchange& exchange, std::uint64_t seed) {
  ASSERT_TRUE(cluster.run(120s)) << "seed " << seed << "\n" << cluster.describe();
  ASSERT_TRUE(cluster.violations().empty()) << "seed " << seed << "\n" << cluster.describe();
  for (auto& rank : cluster.groups()[0]) ASSERT_FALSE(rank->failure()) << "seed " << seed << "\n" << cluster.describe();
  ASSERT_EQ(exchange.wrong(), "") << "seed " << seed;
  ASSERT_TRUE(exchange.all_ended()) << "seed " << seed;
  ASSERT_EQ(exchange.failed(), 0U) << "seed " << seed;
}

TEST(Messages, ArriveOnceAndInOrderForAnyOrderOfTags) {
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    Cluster cluster(settings_of(seed, false));
    cluster.add_group(kRanks, 1, {.calls = 10});
    const Exchange exchange(cluster, kAnyTags[seed % kAnyTags.size()]);
    expect_all_right(cluster, exchange, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Messages, ArriveOnceEvenIfADeviceFails) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Cluster cluster(settings_of(seed, true));
    cluster.add_group(kRanks, 1, {.calls = 10});
    const Exchange exchange(cluster, kAnyTags[seed % kAnyTags.size()]);
    cluster.network().call_at(cluster.network().now() + 4ms + 120us * seed,
                              [&] { cluster.groups()[0][seed % kRanks]->lose_device(seed % 3 == 0); });
    expect_all_right(cluster, exchange, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Messages, EndWithAnErrorThatNamesTheRankThatWasKilled) {
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    Cluster cluster(settings_of(seed, seed % 2 == 0));
    cluster.add_group(kRanks, 1, {.calls = 10});
    const Exchange exchange(cluster, kAnyTags[seed % kAnyTags.size()]);
    auto& ranks = cluster.groups()[0];
    cluster.network().call_at(cluster.network().now() + 5ms + 90us * seed, [&] { ranks[3]->kill(); });
    ASSERT_TRUE(cluster.run(120s)) << "seed " << seed << "\n" << cluster.describe();
    ASSERT_EQ(exchange.wrong(), "") << "seed " << seed;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(ranks[rank]->failure()) << "seed " << seed << "\n" << cluster.describe();
      EXPECT_NE(ranks[rank]->failure()->message.find("rank 3"), std::string::npos) << ranks[rank]->failure()->message;
    }
    EXPECT_GT(exchange.failed(), 0U) << "seed " << seed;
  }
}

/// Runs until every rank's communicator has failed.
bool run_until_failed(Cluster& cluster) {
  return cluster.network().run_until(
      [&] {
        return std::ranges::all_of(cluster.groups()[0],
                                   [](const auto& rank) { return rank->communicator().error().has_value(); });
      },
      cluster.network().now() + 60s);
}

// The error names no rank, because the receive is from any rank; it names the tag only if the receive has a tag.
TEST(Messages, TimeOutIfNoRankSendsThem) {
  for (const std::uint32_t tag : {0U, 5U}) {
    Cluster cluster(settings_of(1, false));
    cluster.add_group(kRanks, 1, {.calls = 1});
    auto& ranks = cluster.groups()[0];
    for (auto& rank : ranks) rank->outstanding_max = 0;
    std::array<std::byte, 8> memory{};
    std::string said;
    cluster.network().call_at(cluster.network().now() + 5ms, [&] {
      ranks[2]->communicator().receive_message(
          std::nullopt,
          {.recv = memory.data(), .count = memory.size(), .tag = tag, .on_done = [&](const Status& status) {
             said = status ? "nothing" : status.error().message;
           }});
    });
    ASSERT_TRUE(run_until_failed(cluster)) << cluster.describe();
    EXPECT_NE(said.find("timed out after 20 s"), std::string::npos) << said;
    const std::string what = tag == 0 ? "recv of 8 uint8 from any rank" : "recv of 8 uint8 with tag 5 from any rank";
    EXPECT_NE(said.find("rank 2: no partner for " + what), std::string::npos) << said;
    for (auto& rank : ranks) EXPECT_EQ(rank->communicator().error()->code, Errc::timed_out);
  }
}

// In a group of this size a rank knows only a few addresses at the start. The higher of two ranks connects, even if the
// lower rank sends.
TEST(Messages, ArriveFromEachOfManyRanksAtAReceiverOfAnyRank) {
  constexpr std::uint32_t kMany = 70;
  for (const std::uint32_t to : {0U, 35U, kMany - 1}) {
    Cluster cluster(settings_of(to + 1, false));
    cluster.add_group(kMany, 1, {.calls = 1});
    auto& ranks = cluster.groups()[0];
    for (auto& rank : ranks) rank->outstanding_max = 0;
    std::vector<std::uint32_t> here(kMany), there(2 * kMany);
    std::map<std::uint32_t, std::uint32_t> sources;
    std::uint32_t received = 0;
    cluster.network().call_at(cluster.network().now() + 1s, [&] {
      for (std::uint32_t i = 0; i < 2 * kMany; ++i) {
        const std::uint32_t tag = i % 2 * 5, from = i / 2;
        here[from] = from;
        ranks[from]->communicator().send_message(to, {.sends = true,
                                                      .send = reinterpret_cast<const std::byte*>(&here[from]),
                                                      .count = sizeof here[from],
                                                      .tag = tag,
                                                      .on_done = [](const Status& status) { EXPECT_TRUE(status); }});
        ranks[to]->communicator().receive_message(std::nullopt, {.recv = reinterpret_cast<std::byte*>(&there[i]),
                                                                 .count = sizeof there[i],
                                                                 .tag = tag,
                                                                 .on_done = [&, i](const Status& status) {
                                                                   received += status ? 1U : 0U;
                                                                   ++sources[there[i]];
                                                                 }});
      }
    });
    ASSERT_TRUE(cluster.network().run_until([&] { return received == 2 * kMany; }, cluster.network().now() + 10s))
        << received << "\n"
        << cluster.describe();
    EXPECT_EQ(sources.size(), std::size_t{kMany});
    for (const auto& [source, messages] : sources) EXPECT_EQ(messages, 2U) << "of rank " << source;
  }
}

// Acts like a library that knows no tags, and refuses the connection.
TEST(Messages, TheErrorOfAnUnsentMessageNamesTheConnection) {
  Cluster cluster(settings_of(1, false));
  cluster.add_group(kRanks, 1, {.calls = 1});
  auto& ranks = cluster.groups()[0];
  for (auto& rank : ranks) rank->outstanding_max = 0;
  cluster.network().call_at(cluster.network().now() + 5ms, [&] {
    cluster.network().refuse_connections(ranks[1]->host(), 100);
    ranks[2]->communicator().send_message(1, {.sends = true, .tag = 5, .on_done = [](const Status&) {}});
  });
  ASSERT_TRUE(run_until_failed(cluster)) << cluster.describe();
  for (auto& rank : ranks) {
    const std::string& message = rank->communicator().error()->message;
    EXPECT_NE(message.find("no partner for send of 0 uint8 with tag 5 to rank 1 (the connection to rank 1 failed "),
              std::string::npos)
        << message;
  }
}

TEST(Messages, ADifferentCountIsAMismatchOnEveryRank) {
  for (const std::uint32_t tag : {0U, 5U}) {
    Cluster cluster(settings_of(1, false));
    cluster.add_group(kRanks, 1, {.calls = 1});
    auto& ranks = cluster.groups()[0];
    for (auto& rank : ranks) rank->outstanding_max = 0;
    std::array<std::byte, 8> here{}, there{};
    cluster.network().call_at(cluster.network().now() + 5ms, [&] {
      const auto ignore = [](const Status&) {};
      ranks[1]->communicator().send_message(
          2, {.sends = true, .send = here.data(), .count = 8, .tag = tag, .on_done = ignore});
      ranks[2]->communicator().receive_message(std::nullopt,
                                               {.recv = there.data(), .count = 7, .tag = tag, .on_done = ignore});
    });
    ASSERT_TRUE(run_until_failed(cluster)) << cluster.describe();
    const std::string with = tag == 0 ? "" : " with tag 5";
    for (auto& rank : ranks) {
      const std::string& message = rank->communicator().error()->message;
      EXPECT_EQ(rank->communicator().error()->code, Errc::mismatch);
      EXPECT_NE(message.find("rank 1 sent 8 uint8" + with + " to rank 2, which called recv for 7 uint8"),
                std::string::npos)
          << message;
    }
  }
}

}  // namespace
}  // namespace tributary::simulation

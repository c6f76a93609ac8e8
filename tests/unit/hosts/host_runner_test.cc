// The stages of ranks on several hosts, driven in turns by one thread. The network between the hosts is a few lines,
// and the test can hold it up.
#include "client/collectives/hosts/host_runner.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "client/collectives/local/waiting.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/scaled_sum.h"

namespace tributary::client::hosts {
namespace {

using testing::HasSubstr;

/// Stands in for the network between the hosts' leaders, and runs their operations: sums of int32, scaled sums, exact
/// sums, and broadcasts.
class Between {
 public:
  explicit Between(std::uint32_t hosts) : waiting_(hosts) {}
  void add(std::uint32_t host, std::unique_ptr<Operation> operation) { waiting_[host].push_back(std::move(operation)); }
  [[nodiscard]] std::size_t waiting(std::uint32_t host) const { return waiting_[host].size(); }
  /// Ends the oldest operation if every leader has begun it.
  bool end_one() {
    std::vector<std::unique_ptr<Operation>> all;
    for (auto& of_host : waiting_) {
      if (of_host.empty()) return false;
    }
    for (auto& of_host : waiting_) {
      all.push_back(std::move(of_host.front()));
      of_host.pop_front();
      EXPECT_EQ(all.back()->signature, all.front()->signature);
    }
    ++operations;
    perform(all);
    for (auto& operation : all) operation->on_done({});
    return true;
  }
  std::uint64_t operations = 0, sent_bytes = 0;

 private:
  void perform(const std::vector<std::unique_ptr<Operation>>& all) {
    const Signature& s = all.front()->signature;
    if (s.collective == Collective::barrier || s.count == 0) return;
    const std::size_t bytes = s.count * size_of(s.dtype);
    std::vector<std::int32_t> result(std::max<std::size_t>(s.count, bytes / sizeof(std::int32_t))), one(s.count);
    if (is_exact_of_hosts(s.op)) {
      std::vector<const void*> inputs;
      for (const auto& operation : all) {
        EXPECT_EQ(operation->rank_inputs.at(0), operation->send);
        inputs.insert(inputs.end(), operation->rank_inputs.begin(), operation->rank_inputs.end());
      }
      sent_bytes += bytes * all.size();
      kernels::exact_sum(s.dtype, inputs, result.data(), s.count,
                         s.op == kExactAverageOfHosts ? static_cast<std::uint32_t>(inputs.size()) : 1);
    } else if (s.op == kScaledSum) {
      std::vector<const void*> inputs;
      for (const auto& operation : all) inputs.push_back(operation->send);
      kernels::reduce_step(s.dtype, s.op, inputs, result.data(), s.count,
                           {.divisor = static_cast<std::uint32_t>(all.size())});
    } else if (s.collective == Collective::broadcast) {
      std::memcpy(result.data(), all[s.root]->send, bytes);
      sent_bytes += bytes;
    } else {
      for (const auto& operation : all) {
        std::memcpy(one.data(), operation->send, bytes);
        std::transform(result.begin(), result.end(), one.begin(), result.begin(), std::plus<>());
        sent_bytes += bytes;
      }
    }
    for (std::uint32_t host = 0; host < all.size(); ++host) {
      const bool wants = s.collective != Collective::reduce || s.root == host;
      EXPECT_TRUE(all[host]->recv != nullptr || !wants);
      if (wants) std::memcpy(all[host]->recv, result.data(), bytes);
    }
  }
  std::vector<std::deque<std::unique_ptr<Operation>>> waiting_;
};

class World {
 public:
  explicit World(std::vector<std::uint32_t> host_of_rank)
      : map_(std::move(host_of_rank)), between(map_.hosts()), done(map_.ranks()) {
    std::vector<std::shared_ptr<local::Arena>> arenas;
    for (std::uint32_t host = 0; host < map_.hosts(); ++host) {
      for (int group = 0; group < 2; ++group) arenas.push_back(*local::create_arena(settings_of(host)));
    }
    for (std::uint32_t rank = 0; rank < map_.ranks(); ++rank) {
      const std::uint32_t host = map_.host_of(rank);
      HostRunner::Parts parts{.rank = rank, .map = map_};
      if (!map_.alone(rank)) {
        auto settings = settings_of(host);
        settings.rank = map_.place_of(rank);
        parts.up = std::make_unique<local::LocalGroup>(arenas[2 * host], settings);
        parts.down = std::make_unique<local::LocalGroup>(arenas[2 * host + 1], settings);
      }
      parts.between = [this, host](std::unique_ptr<Operation> o) { between.add(host, std::move(o)); };
      parts.done = [this, rank](Operation&) { ++done[rank]; };
      runners.push_back(std::make_unique<HostRunner>(std::move(parts)));
    }
  }

  [[nodiscard]] local::GroupSettings settings_of(std::uint32_t host) const {
    return {.ranks = static_cast<std::uint32_t>(map_.members(host).size()),
            .note_bytes = 256,
            .chunk_bytes = 65'536,
            .timeout = std::chrono::hours(1),
            .host = "host-" + std::to_string(host),
            .crowded = true,
            .known_as = map_.members(host)};
  }

  /// Runs until no rank makes progress within the hosts.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& runner : runners) moved = runner->advance() || moved;
    }
  }
  void settle_all() {
    do settle();
    while (between.end_one());
  }

  const HostMap map_;
  Between between;
  std::vector<int> done;
  std::vector<std::unique_ptr<HostRunner>> runners;
};

struct Buffers {
  std::vector<std::vector<std::int32_t>> send, recv;
  std::vector<Operation> operations;
};

std::int32_t value(std::uint32_t rank, std::size_t i) {
  return static_cast<std::int32_t>((rank + 1) * 1'000 + i % 997);
}

Buffers call(const World& world, const Signature& signature) {
  Buffers b;
  const std::uint32_t ranks = world.map_.ranks();
  const bool long_send = signature.collective == Collective::reduce_scatter;
  const bool long_recv = signature.collective == Collective::all_gather;
  b.operations.resize(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    b.send.emplace_back(signature.count * (long_send ? ranks : 1));
    b.recv.emplace_back(signature.count * (long_recv ? ranks : 1));
    for (std::size_t i = 0; i < b.send[rank].size(); ++i) b.send[rank][i] = value(rank, i);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    b.operations[rank].signature = signature;
    b.operations[rank].send = reinterpret_cast<const std::byte*>(b.send[rank].data());
    b.operations[rank].recv = reinterpret_cast<std::byte*>(b.recv[rank].data());
  }
  return b;
}

std::int32_t sum(const World& world, std::size_t i) {
  std::int32_t all = 0;
  for (std::uint32_t rank = 0; rank < world.map_.ranks(); ++rank) all += value(rank, i);
  return all;
}

const std::vector<std::vector<std::uint32_t>> kMaps = {{0, 0, 1, 1}, {0, 1, 1, 1}, {0, 1, 0, 1, 2}, {0, 0, 0, 1}};

TEST(HostRunner, EveryCollectiveGivesWhatItDoesWithoutHosts) {
  for (const auto& hosts : kMaps) {
    World world(hosts);
    const std::uint32_t ranks = world.map_.ranks();
    int calls = 0;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1'000}, std::size_t{130'001}}) {
      for (const auto op : {ReduceOp::sum, ReduceOp::avg}) {
        for (std::uint32_t root = 0; root < ranks; ++root) {
          for (const auto collective : {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                                        Collective::reduce_scatter, Collective::all_gather, Collective::barrier}) {
            const Signature signature{collective, DType::int32, op, root, count};
            SCOPED_TRACE(to_string(signature));
            Buffers b = call(world, signature);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) world.runners[rank]->submit(b.operations[rank]);
            world.settle_all();
            ++calls;
            const auto divisor = op == ReduceOp::avg ? static_cast<std::int32_t>(ranks) : 1;
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
              ASSERT_EQ(world.done[rank], calls);
              const auto& got = b.recv[rank];
              std::size_t wrong = 0;
              for (std::size_t i = 0; i < got.size(); ++i) {
                std::int32_t expected = got[i];
                if (collective == Collective::all_reduce || (collective == Collective::reduce && rank == root))
                  expected = sum(world, i) / divisor;
                if (collective == Collective::reduce_scatter) expected = sum(world, rank * count + i) / divisor;
                if (collective == Collective::broadcast) expected = value(root, i);
                if (collective == Collective::all_gather)
                  expected = value(static_cast<std::uint32_t>(i / count), i % count);
                wrong += got[i] != expected ? 1U : 0U;
              }
              ASSERT_EQ(wrong, 0U) << "rank " << rank;
            }
          }
        }
      }
    }
  }
}

// Every rank contributes 60,000, and the sum of two ranks does not fit into float16.
TEST(HostRunner, AverageOfLargeFloat16IsFiniteWhateverTheSizesOfTheHosts) {
  constexpr std::uint16_t k60000 = 0x7B53;
  constexpr std::size_t kCount = 3'000;
  for (const auto& hosts : kMaps) {
    World world(hosts);
    const std::uint32_t ranks = world.map_.ranks();
    for (const auto collective : {Collective::all_reduce, Collective::reduce}) {
      std::vector<std::vector<std::uint16_t>> send(ranks, std::vector<std::uint16_t>(kCount, k60000)), recv = send;
      std::vector<Operation> operations(ranks);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        operations[rank].signature = {collective, DType::float16, ReduceOp::avg, ranks - 1, kCount};
        operations[rank].send = reinterpret_cast<const std::byte*>(send[rank].data());
        operations[rank].recv = reinterpret_cast<std::byte*>(recv[rank].data());
        std::fill(recv[rank].begin(), recv[rank].end(), std::uint16_t{0});
        world.runners[rank]->submit(operations[rank]);
      }
      world.settle_all();
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (collective == Collective::reduce && rank != ranks - 1) continue;
        for (const std::uint16_t got : recv[rank]) ASSERT_NEAR(got, k60000, 1) << "rank " << rank << " of " << ranks;
      }
    }
  }
}

// The values of one host cancel only with those of another host, and a rounded sum of a host would lose small ones.
TEST(HostRunner, ExactSumsLoseNoBitWhateverTheHosts) {
  for (const auto& hosts : kMaps) {
    World world(hosts);
    const std::uint32_t ranks = world.map_.ranks();
    int calls = 0;
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{40'001}}) {
      for (const auto collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
        for (const auto op : {kExactSum, kExactAverage}) {
          for (const bool in_place : {false, true}) {
            const Signature signature{collective, DType::float64, op, collective == Collective::reduce ? ranks - 1 : 0,
                                      count};
            SCOPED_TRACE(to_string(signature));
            const std::size_t length = count * (collective == Collective::reduce_scatter ? ranks : 1);
            std::vector<std::vector<double>> send(ranks, std::vector<double>(length)), recv = send;
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
              constexpr std::array kFar{1e300, 1.0, -1e300, 0x1p-60, 3.0};
              for (std::size_t i = 0; i < length; ++i)
                send[rank][i] = kFar[(rank + i) % 5] * static_cast<double>(1 + i % 3);
            }
            std::vector<double> expected(length);
            std::vector<const void*> inputs;
            for (const auto& input : send) inputs.push_back(input.data());
            kernels::exact_sum(DType::float64, inputs, expected.data(), length, op == kExactAverage ? ranks : 1);
            std::vector<Operation> operations(ranks);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
              Operation& o = operations[rank];
              o.signature = signature;
              if (in_place) recv[rank] = send[rank];
              o.send = reinterpret_cast<const std::byte*>(in_place ? recv[rank].data() : send[rank].data());
              o.recv = reinterpret_cast<std::byte*>(recv[rank].data());
              if (in_place && collective == Collective::reduce_scatter) o.recv += rank * count * sizeof(double);
              o.in_place = in_place;
              world.runners[rank]->submit(o);
            }
            world.settle_all();
            ++calls;
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
              ASSERT_EQ(world.done[rank], calls);
              if (collective == Collective::reduce && rank != signature.root) continue;
              const bool scatters = collective == Collective::reduce_scatter;
              const double* const got = reinterpret_cast<const double*>(operations[rank].recv);
              const double* const want = expected.data() + (scatters ? rank * count : 0);
              ASSERT_TRUE(count == 0 || std::memcmp(got, want, count * sizeof(double)) == 0) << "rank " << rank;
            }
          }
        }
      }
    }
  }
}

TEST(HostRunner, AHostSendsItsSumOnceWhateverItsNumberOfRanks) {
  World world({0, 0, 0, 0, 1, 1, 1, 1});
  constexpr std::size_t kCount = 500'000;
  Buffers b = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, kCount});
  for (std::uint32_t rank = 0; rank < 8; ++rank) world.runners[rank]->submit(b.operations[rank]);
  world.settle_all();
  EXPECT_EQ(world.between.sent_bytes, 2 * kCount * sizeof(std::int32_t));
}

TEST(HostRunner, StagesOverlapWithinACallAndOverCalls) {
  World world({0, 0, 1, 1});
  constexpr std::size_t kCount = 1 << 20;  // 16 pieces and an announcement
  Buffers b = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, kCount});
  Buffers after = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 100});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    world.runners[rank]->submit(b.operations[rank]);
    world.runners[rank]->submit(after.operations[rank]);
  }
  world.settle();
  const std::size_t ahead = world.between.waiting(0);
  EXPECT_GT(ahead, 4U);  // no result has come back yet
  EXPECT_LT(ahead, 16U);
  ASSERT_TRUE(world.between.end_one());
  world.settle();
  EXPECT_EQ(b.recv[1][0], sum(world, 0)) << "the first piece is not handed down before the last has come back";
  EXPECT_EQ(world.between.waiting(0), ahead) << "the next piece did not take its place";
  world.settle_all();
  for (const int done : world.done) EXPECT_EQ(done, 2);
  EXPECT_EQ(after.recv[3][99], sum(world, 99));
}

TEST(HostRunner, RanksThatDisagreeWithinAHostAreAnError) {
  World world({0, 0, 1, 1});
  Buffers b = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 1'000'000});
  b.operations[1].signature.count = 999'999;
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.runners[rank]->submit(b.operations[rank]);
  world.settle_all();
  for (const std::uint32_t rank : {0U, 1U}) {
    ASSERT_TRUE(world.runners[rank]->error());
    EXPECT_EQ(world.runners[rank]->error()->code, Errc::mismatch);
  }
  EXPECT_FALSE(world.runners[2]->error());
}

TEST(HostRunner, ARankThatLeavesIsNamedByItsNumberAmongAll) {
  World world({0, 0, 1, 1});
  Buffers b = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 10});
  world.runners[2]->submit(b.operations[2]);
  world.runners[3].reset();
  world.runners[2]->inspect();
  ASSERT_TRUE(world.runners[2]->error());
  EXPECT_THAT(world.runners[2]->error()->message, HasSubstr("rank 3 on host host-1 has left"));
}

TEST(HostRunner, AfterAFailureNothingIsTouched) {
  World world({0, 0, 1, 1});
  Buffers b = call(world, {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 1 << 20});
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.runners[rank]->submit(b.operations[rank]);
  world.settle();
  world.runners[0]->fail({Errc::aborted, "it is over"});
  ASSERT_TRUE(world.runners[1]->error());
  EXPECT_EQ(world.runners[1]->error()->message, "it is over");
  world.between.end_one();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(world.runners[0]->advance());
  EXPECT_EQ(world.done[0], 0);
}

}  // namespace
}  // namespace tributary::client::hosts

// Runs every algorithm: results are right, with the same bits on every rank, inputs stay intact, and no run hangs.
#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/schedule/interpreter.h"

namespace tributary::schedule {
namespace {

struct Subject {
  Collective collective;
  Algorithm algorithm;
  bool exact = false;
};

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm algorithm : algorithms(collective)) subjects.push_back({collective, algorithm});
    if (reduces(collective)) subjects.push_back({collective, Algorithm::direct, true});
  }
  return subjects;
}

std::vector<Subject> reducing_subjects() {
  std::vector<Subject> subjects = all_subjects();
  std::erase_if(subjects, [](const Subject& subject) { return !reduces(subject.collective); });
  return subjects;
}

std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  std::string text = std::string(to_string(info.param.collective)) + "_" + name(info.param.algorithm) +
                     (info.param.exact ? "_exact" : "");
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

std::vector<std::uint32_t> rank_counts() {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t n = 1; n <= 17; ++n) counts.push_back(n);
  counts.insert(counts.end(), {32, 33});
  return counts;
}

/// Numbers of elements for each call: of the whole vector, or per rank.
std::set<std::uint64_t> element_counts(std::uint32_t ranks) {
  return {0, 1, 2, ranks - 1, ranks, ranks + 1, 3 * ranks + 5, 1000};
}

std::set<std::uint32_t> roots(Collective collective, std::uint32_t ranks) {
  if (!rooted(collective)) return {0};
  return {0, ranks / 2, ranks - 1};
}

enum class Places : std::uint8_t { out, in, mixed };
constexpr std::initializer_list<Places> kAllPlaces = {Places::out, Places::in, Places::mixed};

std::vector<bool> in_place(const Call& call, Places places) {
  std::vector<bool> result(call.ranks, places == Places::in);
  for (std::uint32_t rank = 0; places == Places::mixed && rank < call.ranks; ++rank)
    result[rank] = mixed(call.seed + rank) % 2 != 0;
  return result;
}

/// Calls use(call) for ranks x counts x roots x places; the size of pieces changes with the seed.
template <class Use>
void for_each_call(const Subject& subject, ReduceOp op, std::initializer_list<Places> all_places, Use use) {
  constexpr std::uint32_t kPieces[] = {7, 1, 64, 1U << 20};
  std::uint64_t calls = 0;
  for (const std::uint32_t ranks : rank_counts()) {
    for (const std::uint64_t count : element_counts(ranks)) {
      for (const std::uint32_t root : roots(subject.collective, ranks)) {
        for (const Places places : all_places) {
          if (places != Places::out && subject.collective == Collective::all_to_all) continue;
          // A thousand elements in a thousand pieces test no more with 33 ranks than with eight.
          const bool large = count == 1000 && ranks > 8;
          Call call{.collective = subject.collective,
                    .algorithm = subject.algorithm,
                    .ranks = ranks,
                    .root = root,
                    .count = count,
                    .piece_elements = large ? 61 : kPieces[calls % 4],
                    .op = op,
                    .exact = subject.exact,
                    .seed = calls++};
          call.in_place = in_place(call, places);
          use(call);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

template <class T>
void run(Interpreter<T>& interpreter, const Call& call) {
  try {
    interpreter.run();
  } catch (const Broken& broken) {
    FAIL() << broken.what() << ": " << call.text();
  }
}

template <class T>
void expect_inputs_intact(const Interpreter<T>& interpreter, const Call& call) {
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
    if (call.in_place[rank]) continue;
    const std::vector<T> now = interpreter.memory(rank).input_now();
    for (std::uint64_t i = 0; i < now.size(); ++i) ASSERT_EQ(now[i], input<T>(call, rank, i)) << call.text();
  }
}

void expect_exact(const Call& call, Channels channels) {
  Interpreter<std::int64_t> interpreter(call, channels, call.seed);
  ASSERT_NO_FATAL_FAILURE(run(interpreter, call));
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
    const std::vector<std::int64_t> output = interpreter.memory(rank).output();
    for (std::uint64_t i = 0; i < output.size(); ++i) {
      ASSERT_EQ(output[i], (expected<std::int64_t, std::int64_t>(call, rank, i)))
          << "rank " << rank << " element " << i << ": " << call.text();
    }
  }
  expect_inputs_intact(interpreter, call);
}

class ScheduleRun : public testing::TestWithParam<Subject> {};
class ScheduleReduction : public testing::TestWithParam<Subject> {};

TEST_P(ScheduleRun, SumsIntegersExactlyWhenChannelsHoldNothing) {
  for_each_call(GetParam(), ReduceOp::sum, kAllPlaces,
                [](const Call& call) { expect_exact(call, Channels::rendezvous); });
}

TEST_P(ScheduleRun, SumsIntegersExactlyWhenChannelsHoldEverything) {
  for_each_call(GetParam(), ReduceOp::sum, kAllPlaces,
                [](const Call& call) { expect_exact(call, Channels::unbounded); });
}

TEST_P(ScheduleReduction, DividesAnAverageOnceAtTheEnd) {
  for_each_call(GetParam(), ReduceOp::avg, kAllPlaces,
                [](const Call& call) { expect_exact(call, Channels::rendezvous); });
}

TEST_P(ScheduleReduction, SaysHowManyRanksAreInEachOperand) {
  for_each_call(GetParam(), ReduceOp::avg, {Places::out}, [](const Call& call) {
    Interpreter<Counted> interpreter(call, Channels::unbounded, call.seed);
    ASSERT_NO_FATAL_FAILURE(run(interpreter, call));
  });
}

/// Returns the bits of every rank's output.
std::vector<std::vector<std::uint32_t>> float_bits(const Interpreter<float>& interpreter, const Call& call) {
  std::vector<std::vector<std::uint32_t>> bits(call.ranks);
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
    for (const float value : interpreter.memory(rank).output())
      bits[rank].push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

/// Higham 1993: every order of n - 1 additions, and one division.
void expect_within_bound(const Interpreter<float>& interpreter, const Call& call) {
  constexpr double kUnit = 0x1p-24;
  const double divisor = call.op == ReduceOp::avg ? call.ranks : 1;
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
    const std::vector<float> output = interpreter.memory(rank).output();
    const std::uint64_t first = call.collective == Collective::reduce_scatter ? rank * call.count : 0;
    for (std::uint64_t i = 0; i < output.size(); ++i) {
      double magnitude = 0;
      for (std::uint32_t from = 0; from < call.ranks; ++from)
        magnitude += std::abs(double{input<float>(call, from, first + i)});
      const double bound = 1.01 * call.ranks * kUnit * magnitude / divisor;
      ASSERT_NEAR(output[i], (expected<float, double>(call, rank, i)), bound) << call.text();
    }
  }
}

TEST_P(ScheduleReduction, GivesTheSameFloatBitsOnAllRanksAndInEveryRun) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
    for_each_call(GetParam(), op, {Places::out}, [](const Call& call) {
      Interpreter<float> first(call, Channels::unbounded, call.seed);
      ASSERT_NO_FATAL_FAILURE(run(first, call));
      const auto bits = float_bits(first, call);
      if (call.collective == Collective::all_reduce) {
        for (const auto& of_rank : bits) ASSERT_EQ(of_rank, bits[0]) << call.text();
      }
      ASSERT_NO_FATAL_FAILURE(expect_within_bound(first, call));

      Call other_places = call;
      other_places.in_place = in_place(call, Places::mixed);
      Interpreter<float> second(other_places, Channels::rendezvous, call.seed + 1);
      ASSERT_NO_FATAL_FAILURE(run(second, other_places));
      ASSERT_EQ(float_bits(second, call), bits) << call.text();
    });
  }
}

/// Returns the rank whose input is the first operand of an element; the other inputs follow around the ring.
std::uint32_t first_operand(const Call& call, std::uint32_t rank, std::uint64_t index) {
  if (call.algorithm == Algorithm::binomial) return call.root;
  const bool ring = call.algorithm == Algorithm::ring || call.algorithm == Algorithm::reduce_scatter_gather;
  if (!ring) return 0;
  if (call.collective == Collective::reduce_scatter) return (rank + 1) % call.ranks;
  std::uint32_t owner = 0;
  for (std::uint64_t end = 0; owner < call.ranks; ++owner) {
    end += call.count / call.ranks + (owner < call.count % call.ranks ? 1 : 0);
    if (index < end) break;
  }
  return (owner + 1) % call.ranks;
}

TEST_P(ScheduleReduction, TakesOperandsInRankOrderFromAFixedFirst) {
  for_each_call(GetParam(), ReduceOp::sum, {Places::mixed}, [](const Call& call) {
    Interpreter<Affine> interpreter(call, Channels::unbounded, call.seed);
    ASSERT_NO_FATAL_FAILURE(run(interpreter, call));
    for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
      const std::vector<Affine> output = interpreter.memory(rank).output();
      const std::uint64_t offset = call.collective == Collective::reduce_scatter ? rank * call.count : 0;
      for (std::uint64_t i = 0; i < output.size(); ++i) {
        const std::uint32_t first = first_operand(call, rank, i);
        Affine combined = input<Affine>(call, first, offset + i);
        for (std::uint32_t next = 1; next < call.ranks; ++next) {
          combined = combined + input<Affine>(call, (first + next) % call.ranks, offset + i);
        }
        ASSERT_TRUE(output[i] == combined) << "rank " << rank << " element " << i << ": " << call.text();
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleRun, testing::ValuesIn(all_subjects()), subject_name);
INSTANTIATE_TEST_SUITE_P(All, ScheduleReduction, testing::ValuesIn(reducing_subjects()), subject_name);

TEST(ScheduleRun, ReducesMoreRanksThanOnePassTakes) {
  for (const std::uint32_t ranks : {63U, 64U, 65U, 127U, 128U, 190U}) {
    Call call{.collective = Collective::reduce_scatter,
              .algorithm = Algorithm::direct,
              .ranks = ranks,
              .count = 2,
              .op = ReduceOp::avg};
    call.in_place.assign(ranks, false);
    ASSERT_NO_FATAL_FAILURE(expect_exact(call, Channels::rendezvous));
  }
}

TEST(ScheduleRun, ReducesAllRanksOfAnExactSumInOnePass) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
    for (const std::uint32_t ranks : {65U, 130U}) {
      Call call{.collective = collective, .algorithm = Algorithm::direct, .ranks = ranks, .count = 3, .exact = true};
      call.in_place.assign(ranks, false);
      ASSERT_NO_FATAL_FAILURE(expect_exact(call, Channels::rendezvous));
    }
  }
}

TEST(ScheduleRun, SumsALongExactVectorOfFewRanksByParts) {
  for (std::uint32_t ranks = 2; ranks <= 5; ++ranks) {
    for (const Places places : kAllPlaces) {
      Call call{.collective = Collective::all_reduce,
                .algorithm = Algorithm::direct,
                .ranks = ranks,
                .count = 5001,
                .piece_elements = 100,
                .exact = true};
      call.in_place = in_place(call, places);
      ASSERT_NO_FATAL_FAILURE(expect_exact(call, Channels::rendezvous));
    }
  }
}

TEST(ScheduleRun, NoRankLeavesABarrierBeforeTheLastHasEntered) {
  // A rank that has not entered sends no message: run all other ranks, and check that none of them finishes.
  for (const std::uint32_t ranks : rank_counts()) {
    std::vector<std::set<std::uint32_t>> known(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) known[rank].insert(rank);
    Actions actions;
    const auto schedule = [&](std::uint32_t rank) {
      return Schedule(
          {.collective = Collective::barrier, .algorithm = Algorithm::dissemination, .ranks = ranks, .rank = rank});
    };
    for (std::uint64_t round = 0; round < schedule(0).rounds(); ++round) {
      const auto before = known;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        schedule(rank).actions(round, actions);
        for (const Action& action : actions) {
          if (const auto* receive = std::get_if<Receive>(&action))
            known[rank].insert(before[receive->peer].begin(), before[receive->peer].end());
        }
      }
    }
    for (const auto& entered : known) EXPECT_EQ(entered.size(), ranks);
  }
}

}  // namespace
}  // namespace tributary::schedule

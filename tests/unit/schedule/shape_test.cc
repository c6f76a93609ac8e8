// Checks schedules without running them: the ranks agree, bytes and rounds are as in the textbooks, the choice of the
// algorithm is right, and wrong calls are refused.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/schedule/call.h"

namespace tributary::schedule {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;         // from, to
using Messages = std::map<Pair, std::vector<std::uint64_t>>;  // elements, in order

/// One round of all ranks: the messages that they send, and the messages that they expect.
struct Round {
  Messages sent;
  Messages expected;
};

Round round_of(const std::vector<Schedule>& schedules, std::uint64_t number) {
  Round round;
  Actions actions;
  for (const Schedule& schedule : schedules) {
    const std::uint32_t self = schedule.parameters().rank;
    schedule.actions(number, actions);
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<Send>(&action)) round.sent[{self, send->peer}].push_back(send->from.count);
      if (const auto* receive = std::get_if<Receive>(&action))
        round.expected[{receive->peer, self}].push_back(receive->into.count);
    }
  }
  return round;
}

std::vector<Schedule> schedules_of(Call call) {
  call.in_place.resize(call.ranks, false);
  std::vector<Schedule> schedules;
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank) schedules.emplace_back(call.at(rank, 4));
  return schedules;
}

std::vector<std::uint64_t> elements_sent(const Call& call) {
  std::vector<std::uint64_t> sent(call.ranks);
  const std::vector<Schedule> schedules = schedules_of(call);
  for (std::uint64_t number = 0; number < schedules[0].rounds(); ++number) {
    for (const auto& [pair, messages] : round_of(schedules, number).sent) {
      sent[pair.first] = std::accumulate(messages.begin(), messages.end(), sent[pair.first]);
    }
  }
  return sent;
}

std::uint64_t total(const std::vector<std::uint64_t>& sent) {
  return std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
}

TEST(ScheduleShape, EverySendHasItsReceiveInTheSameRoundInOrder) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm algorithm : algorithms(collective)) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 11U, 13U, 16U, 17U, 32U, 33U, 70U, 100U}) {
        for (const std::uint64_t count :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{ranks} - 1, std::uint64_t{ranks},
              std::uint64_t{ranks} + 1, 3 * std::uint64_t{ranks} + 5, std::uint64_t{1000}}) {
          const Call call{.collective = collective,
                          .algorithm = algorithm,
                          .ranks = ranks,
                          .root = ranks / 3,
                          .count = count,
                          .piece_elements = 13};
          const std::vector<Schedule> schedules = schedules_of(call);
          for (const Schedule& schedule : schedules) ASSERT_EQ(schedule.rounds(), schedules[0].rounds());
          for (std::uint64_t number = 0; number < schedules[0].rounds(); ++number) {
            const Round round = round_of(schedules, number);
            ASSERT_EQ(round.sent, round.expected) << to_string(collective) << " by " << name(algorithm) << ", ranks "
                                                  << ranks << ", count " << count << ", round " << number;
            for (const auto& [pair, messages] : round.sent) {
              for (const std::uint64_t elements : messages) {
                ASSERT_LE(elements, 13U);
                ASSERT_TRUE(elements > 0 || collective == Collective::barrier);
              }
            }
          }
        }
      }
    }
  }
}

TEST(ScheduleShape, RingSendsTwoNMinusOneNthsOfTheVector) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    const std::uint64_t count = 60 * ranks;
    for (const std::uint64_t sent : elements_sent({.algorithm = Algorithm::ring, .ranks = ranks, .count = count})) {
      EXPECT_EQ(sent, 2 * (ranks - 1) * (count / ranks));
    }
    // If the count is not divisible, all ranks together send equally much. Each rank sends at most one element per step
    // more than its share.
    const std::vector<std::uint64_t> uneven =
        elements_sent({.algorithm = Algorithm::ring, .ranks = ranks, .count = count + 1});
    EXPECT_EQ(total(uneven), 2 * (ranks - 1) * (count + 1));
    for (const std::uint64_t sent : uneven) EXPECT_LE(sent, 2 * (ranks - 1) * (count / ranks + 1));
  }
}

TEST(ScheduleShape, ReduceScatterAndAllGatherSendEveryPartOnce) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
      for (const Algorithm algorithm : algorithms(collective)) {
        for (const std::uint64_t sent :
             elements_sent({.collective = collective, .algorithm = algorithm, .ranks = ranks, .count = 50})) {
          EXPECT_EQ(sent, (ranks - 1) * 50U) << name(algorithm);
        }
      }
    }
  }
}

TEST(ScheduleShape, DoublingSendsTheVectorLogNTimesAndHalvingDoublingLikeTheRing) {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 16U, 32U}) {
    const std::uint64_t count = 64;
    for (const std::uint64_t sent :
         elements_sent({.algorithm = Algorithm::recursive_doubling, .ranks = ranks, .count = count})) {
      EXPECT_EQ(sent, static_cast<unsigned>(std::countr_zero(ranks)) * count);
    }
    for (const std::uint64_t sent :
         elements_sent({.algorithm = Algorithm::halving_doubling, .ranks = ranks, .count = count})) {
      EXPECT_EQ(sent, 2 * (ranks - 1) * (count / ranks));
    }
  }
  // With 7 ranks, 3 ranks fold: they send the vector once to a partner, and each partner sends it back once.
  EXPECT_EQ(total(elements_sent({.algorithm = Algorithm::recursive_doubling, .ranks = 7, .count = 64})),
            4 * 2 * 64 + 2 * 3 * 64U);
  EXPECT_EQ(total(elements_sent({.algorithm = Algorithm::halving_doubling, .ranks = 7, .count = 64})),
            4 * 2 * 48 + 2 * 3 * 64U);
}

TEST(ScheduleShape, TreesSendTheVectorToOrFromEveryRankOnce) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    for (const std::uint32_t root : {0U, ranks - 1}) {
      EXPECT_EQ(total(elements_sent({.collective = Collective::broadcast,
                                     .algorithm = Algorithm::binomial,
                                     .ranks = ranks,
                                     .root = root,
                                     .count = 50})),
                (ranks - 1) * 50U);
      EXPECT_EQ(total(elements_sent({.collective = Collective::reduce,
                                     .algorithm = Algorithm::binomial,
                                     .ranks = ranks,
                                     .root = root,
                                     .count = 50})),
                (ranks - 1) * 50U);
      // No rank gets an element twice.
      EXPECT_EQ(total(elements_sent({.collective = Collective::broadcast,
                                     .algorithm = Algorithm::scatter_all_gather,
                                     .ranks = ranks,
                                     .root = root,
                                     .count = 50})),
                (ranks - 1) * 50U);
      EXPECT_EQ(total(elements_sent({.collective = Collective::gather,
                                     .algorithm = Algorithm::linear,
                                     .ranks = ranks,
                                     .root = root,
                                     .count = 50})),
                (ranks - 1) * 50U);
      EXPECT_EQ(total(elements_sent({.collective = Collective::scatter,
                                     .algorithm = Algorithm::linear,
                                     .ranks = ranks,
                                     .root = root,
                                     .count = 50})),
                (ranks - 1) * 50U);
    }
    const std::uint64_t count = 60 * ranks;
    const std::vector<std::uint64_t> reduced = elements_sent({.collective = Collective::reduce,
                                                              .algorithm = Algorithm::reduce_scatter_gather,
                                                              .ranks = ranks,
                                                              .count = count});
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(reduced[rank], (ranks - 1 + (rank == 0 ? 0 : 1)) * (count / ranks));
    // The root of a large broadcast sends each of its elements only once.
    const std::vector<std::uint64_t> sent = elements_sent({.collective = Collective::broadcast,
                                                           .algorithm = Algorithm::scatter_all_gather,
                                                           .ranks = ranks,
                                                           .count = count});
    EXPECT_LE(sent[0], 2 * (ranks - 1) * (count / ranks));
  }
}

TEST(ScheduleShape, RoundsAreThoseOfTheTextbookWhenMessagesAreSmall) {
  const auto rounds = [](Collective collective, Algorithm algorithm, std::uint32_t ranks) {
    return Schedule(
               {.collective = collective, .algorithm = algorithm, .ranks = ranks, .count = 100, .element_bytes = 4})
        .rounds();
  };
  EXPECT_EQ(rounds(Collective::all_reduce, Algorithm::ring, 8), 14U);
  EXPECT_EQ(rounds(Collective::all_reduce, Algorithm::recursive_doubling, 8), 3U);
  EXPECT_EQ(rounds(Collective::all_reduce, Algorithm::recursive_doubling, 9), 5U);
  EXPECT_EQ(rounds(Collective::all_reduce, Algorithm::halving_doubling, 8), 6U);
  EXPECT_EQ(rounds(Collective::broadcast, Algorithm::binomial, 9), 4U);
  EXPECT_EQ(rounds(Collective::broadcast, Algorithm::scatter_all_gather, 9), 12U);
  EXPECT_EQ(rounds(Collective::reduce, Algorithm::binomial, 9), 4U);
  EXPECT_EQ(rounds(Collective::all_gather, Algorithm::bruck, 9), 4U);
  EXPECT_EQ(rounds(Collective::barrier, Algorithm::dissemination, 9), 4U);
  EXPECT_EQ(rounds(Collective::all_to_all, Algorithm::pairwise, 9), 1U);    // all 8 exchanges fit one round
  EXPECT_EQ(rounds(Collective::reduce_scatter, Algorithm::direct, 9), 2U);  // a round of exchanges and one reduction
  EXPECT_EQ(rounds(Collective::gather, Algorithm::linear, 100), 4U);        // 32 at a time
}

TEST(ScheduleShape, SeveralPiecesOfALargeMessageAreUnderWay) {
  const std::uint64_t count = 2ULL << 30;  // 8 GiB, 1 GiB per rank
  const Schedule schedule({.algorithm = Algorithm::ring, .ranks = 8, .rank = 3, .count = count, .element_bytes = 4});
  EXPECT_EQ(schedule.rounds(), 14U * ((count / 8 * 4) / (kPiecesPerRound << 18)));
  EXPECT_EQ(schedule.scratch_count(), 0U);
  Actions actions;
  schedule.actions(5, actions);
  EXPECT_EQ(actions.size(), 2 * kPiecesPerRound);
}

TEST(ScheduleShape, NamesAreAllDifferent) {
  std::map<std::string, int> seen;
  for (std::uint8_t i = 0; i < kAlgorithmCount; ++i) ++seen[name(static_cast<Algorithm>(i))];
  EXPECT_EQ(seen.size(), kAlgorithmCount);
  EXPECT_EQ(seen.count("invalid"), 0U);
}

TEST(ScheduleShape, ProgrammingErrorsThrow) {
  EXPECT_THROW(Schedule({.algorithm = Algorithm::bruck}), std::invalid_argument);
  EXPECT_THROW(Schedule({.ranks = 2, .rank = 2}), std::invalid_argument);
  EXPECT_THROW(Schedule({.ranks = 0}), std::invalid_argument);
  EXPECT_THROW(Schedule({.element_bytes = 0}), std::invalid_argument);
  EXPECT_THROW(Schedule({.collective = Collective::broadcast, .algorithm = Algorithm::binomial, .ranks = 2, .root = 2}),
               std::invalid_argument);
  EXPECT_THROW(
      Schedule({.collective = Collective::all_to_all, .algorithm = Algorithm::pairwise, .ranks = 2, .in_place = true}),
      std::invalid_argument);
}

}  // namespace
}  // namespace tributary::schedule

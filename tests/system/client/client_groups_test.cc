// Communicators that are made from another one: split, shrunk and grown. The ranks are threads of this process.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

int rank_of(const tributary_comm* comm) {
  int rank = -1;
  EXPECT_EQ(tributary_comm_rank(comm, &rank), TRIBUTARY_OK) << last_error();
  return rank;
}

int size_of(const tributary_comm* comm) {
  int size = -1;
  EXPECT_EQ(tributary_comm_size(comm, &size), TRIBUTARY_OK) << last_error();
  return size;
}

/// Returns the value of each rank of the communicator, in its order of ranks.
std::vector<int> values_of_all(tributary_comm* comm, int value) {
  std::vector<int> all(static_cast<std::size_t>(size_of(comm)), -1);
  EXPECT_EQ(tributary_all_gather(&value, all.data(), 1, TRIBUTARY_INT32, comm, nullptr), TRIBUTARY_OK) << last_error();
  return all;
}

void destroy(tributary_comm* comm) {
  EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << last_error();
}

TEST(Groups, ASplitGivesEachColorItsRanksInTheOrderOfTheirKeys) {
  run_ranks(5, [](tributary_comm* comm, int rank) {
    tributary_comm* half = nullptr;
    // Ranks 0, 2 and 4 in reverse order; ranks 1 and 3 have equal keys, and keep their order.
    const tributary_config config = config_with(patience(Milliseconds(20'000)));
    ASSERT_EQ(tributary_comm_split(comm, rank % 2, rank % 2 == 0 ? -rank : 7, &half, &config), TRIBUTARY_OK)
        << last_error();
    const std::vector<int> even{4, 2, 0}, odd{1, 3};
    EXPECT_EQ(values_of_all(half, rank), rank % 2 == 0 ? even : odd);
    EXPECT_EQ(values_of_all(comm, rank), (std::vector<int>{0, 1, 2, 3, 4})) << "the old communicator is as it was";
    destroy(half);
  });
}

TEST(Groups, ARankWithoutAColorGetsNoCommunicator) {
  run_ranks(3, [](tributary_comm* comm, int rank) {
    tributary_comm* pair = nullptr;
    ASSERT_EQ(tributary_comm_split(comm, rank == 1 ? TRIBUTARY_SPLIT_NONE : 3, 0, &pair, nullptr), TRIBUTARY_OK)
        << last_error();
    ASSERT_EQ(pair == nullptr, rank == 1);
    if (pair == nullptr) return;
    EXPECT_EQ(values_of_all(pair, rank), (std::vector<int>{0, 2}));
    destroy(pair);
  });
}

TEST(Groups, AColorThatIsNoneIsAnErrorOnAllRanksAndNamesItsRank) {
  run_ranks(3, [](tributary_comm* comm, int rank) {
    tributary_comm* made = nullptr;
    EXPECT_EQ(tributary_comm_split(comm, rank == 2 ? -5 : 0, 0, &made, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_TRUE(last_error().contains("the color of rank 2 is -5")) << last_error();
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(values_of_all(comm, rank), (std::vector<int>{0, 1, 2}));
  });
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
}

TEST(Groups, ASplitThatFailsLeavesNoListener) {
  const auto fail_once = [] {
    run_ranks(2, [](tributary_comm* comm, int) {
      tributary_config config = config_with(patience(Milliseconds(1'000)));
      config.manager = "http://127.0.0.1:1";
      config.token_file = "/no/such/file";
      tributary_comm* made = nullptr;
      EXPECT_NE(tributary_comm_split(comm, 0, 0, &made, &config), TRIBUTARY_OK);
      EXPECT_EQ(made, nullptr);
    });
  };
  fail_once();
  const auto before = open_descriptors();
  fail_once();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Groups, AShrunkCommunicatorHasTheOtherRanksAndCanShrinkAgain) {
  std::atomic<int> shrunk{0};
  run_ranks(4, [&](tributary_comm* comm, int rank) {
    const tributary_config config = config_with(patience(Milliseconds(20'000)));
    tributary_comm* three = nullptr;
    const int first = 0;
    EXPECT_EQ(tributary_comm_shrink(comm, &first, 1, &three, &config), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_TRUE(last_error().contains(rank == 0 ? "this rank, 0, is among" : "tributary_comm_prepare_shrink"))
        << last_error();
    ASSERT_EQ(tributary_comm_prepare_shrink(comm, &config), TRIBUTARY_OK) << last_error();
    if (rank == 0) return;
    ASSERT_EQ(tributary_comm_shrink(comm, &first, 1, &three, &config), TRIBUTARY_OK) << last_error();
    EXPECT_EQ(values_of_all(three, rank), (std::vector<int>{1, 2, 3}));
    tributary_comm* two = nullptr;
    const int last = 2;
    if (rank != 3) {
      ASSERT_EQ(tributary_comm_shrink(three, &last, 1, &two, &config), TRIBUTARY_OK) << last_error();
      EXPECT_EQ(values_of_all(two, rank), (std::vector<int>{1, 2}));
      destroy(two);
      ++shrunk;
    }
    destroy(three);
  });
  EXPECT_EQ(shrunk, 2);
}

TEST(Groups, RanksThatExcludeDifferentRanksGetNoCommunicator) {
  std::atomic<int> errors{0};
  run_ranks(4, [&](tributary_comm* comm, int rank) {
    const tributary_config config = config_with(patience(Milliseconds(3'000)));
    ASSERT_EQ(tributary_comm_prepare_shrink(comm, &config), TRIBUTARY_OK) << last_error();
    if (rank == 2) return;
    tributary_comm* rest = nullptr;
    const int excluded = rank == 3 ? 2 : 3;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NE(tributary_comm_shrink(comm, &excluded, 1, &rest, &config), TRIBUTARY_OK);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(Milliseconds(8'000))) << last_error();
    EXPECT_EQ(rest, nullptr);
    ++errors;
  });
  EXPECT_EQ(errors, 3);
}

TEST(Groups, AShrinkThatForgetsALostRankCanBeRepeatedWithALongerList) {
  std::atomic<int> shrunk{0};
  run_ranks(4, [&](tributary_comm* comm, int rank) {
    const tributary_config patient = config_with(patience(Milliseconds(20'000)));
    const tributary_config config = config_with(patience(Milliseconds(2'000)));
    ASSERT_EQ(tributary_comm_prepare_shrink(comm, &patient), TRIBUTARY_OK) << last_error();
    if (rank >= 2) return;
    tributary_comm* rest = nullptr;
    const int lost[] = {2, 3};
    EXPECT_NE(tributary_comm_shrink(comm, lost, 1, &rest, &config), TRIBUTARY_OK);
    EXPECT_EQ(rest, nullptr);
    ASSERT_EQ(tributary_comm_shrink(comm, lost, 2, &rest, &patient), TRIBUTARY_OK) << last_error();
    EXPECT_EQ(values_of_all(rest, rank), (std::vector<int>{0, 1}));
    destroy(rest);
    EXPECT_EQ(tributary_comm_shrink(comm, lost, 2, &rest, &config), TRIBUTARY_ERROR_EXHAUSTED);
    EXPECT_TRUE(last_error().contains("rank 0 was the lowest rank of 2 calls already")) << last_error();
    ++shrunk;
  });
  EXPECT_EQ(shrunk, 2);
}

TEST(Groups, RanksJoinAGrownCommunicatorBehindTheOthers) {
  const tributary_unique_id id = make_id();
  const auto check = [](tributary_comm* comm) {
    EXPECT_EQ(values_of_all(comm, 10 * rank_of(comm)), (std::vector<int>{0, 10, 20, 30}));
    destroy(comm);
  };
  std::thread newcomers([&] {
    in_threads(2, [&](int index) {
      const tributary_config config = config_with(patience(Milliseconds(20'000)));
      tributary_comm* comm = nullptr;
      ASSERT_EQ(tributary_comm_init_rank_config(&comm, 4, &id, 2 + index, &config), TRIBUTARY_OK) << last_error();
      check(comm);
    });
  });
  run_ranks(2, [&](tributary_comm* comm, int rank) {
    const tributary_config config = config_with(patience(Milliseconds(20'000)));
    tributary_comm* grown = nullptr;
    ASSERT_EQ(tributary_comm_grow(comm, 4, rank == 0 ? &id : nullptr, &grown, &config), TRIBUTARY_OK) << last_error();
    check(grown);
  });
  newcomers.join();
}

TEST(Groups, AGrownCommunicatorNeedsAnIdAndAllOldRanks) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    tributary_comm* grown = nullptr;
    EXPECT_EQ(tributary_comm_grow(comm, 3, nullptr, &grown, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_TRUE(last_error().contains("the id of rank 0 is NULL")) << last_error();
    tributary_unique_id id{};
    EXPECT_EQ(tributary_comm_grow(comm, 1, rank == 0 ? &id : nullptr, &grown, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_TRUE(last_error().contains("fewer than the 2 ranks")) << last_error();
  });
}

}  // namespace
}  // namespace tributary::test

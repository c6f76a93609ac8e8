// If the calls of ranks differ, every rank gets an error that says which rank called what.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

using Call = std::function<tributary_status(tributary_comm*, float* send, float* recv)>;

struct Outcome {
  tributary_status status = TRIBUTARY_OK;
  std::string sentence;
};

/// Lets every rank make its call; returns the outcomes.
std::vector<Outcome> outcomes(const std::vector<Call>& calls) {
  std::vector<Outcome> result(calls.size());
  run_ranks_without_end(static_cast<int>(calls.size()),
                        [&](tributary_comm* comm, int rank) {
                          std::vector<float> send(4096, 1.0F), recv(4096);
                          Outcome& mine = result[static_cast<std::size_t>(rank)];
                          mine.status = calls[static_cast<std::size_t>(rank)](comm, send.data(), recv.data());
                          mine.sentence = last_error();
                          EXPECT_EQ(mine.sentence, tributary_last_error(comm));
                          // Every call after a mismatch ends with the same error: the communicator is no longer usable.
                          EXPECT_EQ(tributary_barrier(comm, nullptr), mine.status);
                          tributary_comm_destroy(comm);
                        },
                        {.timeout = patience(Milliseconds(4000))});
  return result;
}

void expect_mismatch_on_all(const std::vector<Call>& calls, const std::vector<std::string>& said) {
  const auto all = outcomes(calls);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].status, TRIBUTARY_ERROR_MISMATCH) << "rank " << rank << ": " << all[rank].sentence;
    for (const std::string& text : said) {
      EXPECT_NE(all[rank].sentence.find(text), std::string::npos)
          << "rank " << rank << " lacks '" << text << "': " << all[rank].sentence;
    }
  }
}

Call all_reduce(std::size_t count, tributary_dtype dtype = TRIBUTARY_FLOAT32, tributary_op op = TRIBUTARY_SUM) {
  return [=](tributary_comm* comm, float* send, float* recv) {
    return tributary_all_reduce(send, recv, count, dtype, op, comm, nullptr);
  };
}
Call broadcast(std::size_t count, int root) {
  return [=](tributary_comm* comm, float* send, float* recv) {
    return tributary_broadcast(send, recv, count, TRIBUTARY_FLOAT32, root, comm, nullptr);
  };
}
Call then_barrier(Call first) {
  return [first = std::move(first)](tributary_comm* comm, float* send, float* recv) {
    const auto status = first(comm, send, recv);
    return status != TRIBUTARY_OK ? status : tributary_barrier(comm, nullptr);
  };
}
Call barrier() {
  return [](tributary_comm* comm, float*, float*) { return tributary_barrier(comm, nullptr); };
}

TEST(Mismatch, EveryRankReportsDifferentCounts) {
  expect_mismatch_on_all({all_reduce(100), all_reduce(100), all_reduce(101)}, {"100 float32", "101 float32", "rank 2"});
}

TEST(Mismatch, EveryRankReportsDifferentDtypes) {
  expect_mismatch_on_all({all_reduce(64), all_reduce(64, TRIBUTARY_INT32), all_reduce(64)},
                         {"float32", "int32", "rank 1"});
}

TEST(Mismatch, EveryRankReportsDifferentOperators) {
  expect_mismatch_on_all({all_reduce(64, TRIBUTARY_FLOAT32, TRIBUTARY_MAX), all_reduce(64)},
                         {"max", "sum", "rank 0", "rank 1"});
}

tributary_op with(tributary_op op, int numerics) {
  return static_cast<tributary_op>(op | numerics);
}

TEST(Mismatch, EveryRankReportsDifferentNumericsOfOneCall) {
  const auto float32 = TRIBUTARY_FLOAT32;
  expect_mismatch_on_all({all_reduce(64, float32, with(TRIBUTARY_SUM, TRIBUTARY_OP_EXACT)), all_reduce(64)},
                         {"(exact sum)", "(sum)", "rank 0", "rank 1"});
  // These vectors go around a ring, or to each part's owner.
  expect_mismatch_on_all(
      {all_reduce(4000), all_reduce(4000, float32, with(TRIBUTARY_AVG, TRIBUTARY_OP_EXACT)), all_reduce(4000)},
      {"(exact avg)", "(sum)", "rank 1"});
  expect_mismatch_on_all(
      {all_reduce(64, float32, TRIBUTARY_PROD), all_reduce(64, float32, with(TRIBUTARY_PROD, TRIBUTARY_OP_EXACT))},
      {"(ordered prod)", "(prod)", "rank 0", "rank 1"});
}

// Both roots have sent their data, and their calls have ended, before a rank can know of the mismatch. The next call
// reports it.
TEST(Mismatch, EveryRankReportsDifferentRootsAtTheNextCallAtTheLatest) {
  const auto broadcasts = [](int root) { return then_barrier(broadcast(1000, root)); };
  expect_mismatch_on_all({broadcasts(0), broadcasts(1), broadcasts(0)},
                         {"broadcast of 1000 float32 from rank 0", "broadcast of 1000 float32 from rank 1"});
}

TEST(Mismatch, IsFoundEvenWhenNobodyCallsAnythingAfterwards) {
  run_ranks_without_end(2,
                        [](tributary_comm* comm, int rank) {
                          float value = 1;  // each rank believes that it is the root, so both only send
                          // In shared memory, each call compares the calls of all ranks before it ends.
                          ASSERT_EQ(tributary_broadcast(&value, &value, 1, TRIBUTARY_FLOAT32, rank, comm, nullptr),
                                    shares_memory() ? TRIBUTARY_ERROR_MISMATCH : TRIBUTARY_OK);
                          tributary_info info{};
                          info.struct_bytes = sizeof info;
                          const auto limit = std::chrono::steady_clock::now() + patience(Milliseconds(5000));
                          while (!std::string(info.reason).contains("broadcast of 1 float32 from rank 1")) {
                            ASSERT_LT(std::chrono::steady_clock::now(), limit) << info.reason;
                            ASSERT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK);
                          }
                          EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_ERROR_MISMATCH);
                          tributary_comm_destroy(comm);
                        },
                        {.timeout = patience(Milliseconds(4000))});
}

TEST(Mismatch, EveryRankReportsDifferentCollectives) {
  expect_mismatch_on_all({all_reduce(2048), barrier(), all_reduce(2048)},
                         {"all_reduce of 2048 float32", "barrier", "rank 1"});
}

TEST(Mismatch, EveryRankReportsADifferentOrderOfCalls) {
  const auto in_order = [](bool barrier_first) -> Call {
    return [=](tributary_comm* comm, float* send, float* recv) {
      const auto reduce = [&] {
        return tributary_all_reduce(send, recv, 3, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr);
      };
      const auto first = barrier_first ? tributary_barrier(comm, nullptr) : reduce();
      return first != TRIBUTARY_OK ? first : (barrier_first ? reduce() : tributary_barrier(comm, nullptr));
    };
  };
  expect_mismatch_on_all({in_order(false), in_order(false), in_order(true), in_order(false)},
                         {"barrier", "all_reduce of 3 float32"});
}

TEST(Mismatch, BothSidesReportDifferentMessages) {
  const Call sends = [](tributary_comm* comm, float* send, float*) {
    return tributary_send(send, 10, TRIBUTARY_FLOAT32, 1, comm, nullptr);
  };
  const Call receives = [](tributary_comm* comm, float*, float* recv) {
    return tributary_recv(recv, 11, TRIBUTARY_FLOAT32, 0, comm, nullptr);
  };
  // The sender's call may have ended before the error; then its next call reports it.
  const auto all = outcomes({[&](tributary_comm* comm, float* send, float* recv) {
                               const auto status = sends(comm, send, recv);
                               return status != TRIBUTARY_OK ? status : tributary_barrier(comm, nullptr);
                             },
                             receives});
  for (const Outcome& one : all) {
    EXPECT_EQ(one.status, TRIBUTARY_ERROR_MISMATCH) << one.sentence;
    EXPECT_NE(one.sentence.find("10 float32"), std::string::npos) << one.sentence;
    EXPECT_NE(one.sentence.find("11 float32"), std::string::npos) << one.sentence;
  }
}

TEST(Mismatch, ARankReportsADifferenceInAMessageToItself) {
  run_ranks(1, [](tributary_comm* comm, int) {
    float value = 0;
    tributary_request* send = nullptr;
    ASSERT_EQ(tributary_send(&value, 1, TRIBUTARY_FLOAT32, 0, comm, &send), TRIBUTARY_OK);
    std::int32_t other = 0;
    EXPECT_EQ(tributary_recv(&other, 1, TRIBUTARY_INT32, 0, comm, nullptr), TRIBUTARY_ERROR_MISMATCH);
    EXPECT_EQ(tributary_wait(send, -1), TRIBUTARY_ERROR_MISMATCH);
  });
}

TEST(Mismatch, ARankThatDoesNotCallIsNamedWithinTheTimeOut) {
  const auto timeout = patience(Milliseconds(1500));
  std::mutex mutex;
  std::vector<Outcome> all(3);
  run_ranks_without_end(3,
                        [&](tributary_comm* comm, int rank) {
                          Outcome mine;
                          const auto begin = std::chrono::steady_clock::now();
                          if (rank == 1) {
                            float value = 0;  // this rank waits for a message that never comes, and does not take part
                            mine.status = tributary_recv(&value, 1, TRIBUTARY_FLOAT32, 0, comm, nullptr);
                          } else {
                            mine.status = tributary_barrier(comm, nullptr);
                          }
                          EXPECT_LT(std::chrono::steady_clock::now() - begin, timeout + timeout / 2);
                          mine.sentence = last_error();
                          tributary_comm_destroy(comm);
                          const std::lock_guard lock(mutex);
                          all[static_cast<std::size_t>(rank)] = mine;
                        },
                        {.timeout = timeout});
  for (const Outcome& one : all) {
    EXPECT_EQ(one.status, TRIBUTARY_ERROR_TIMED_OUT) << one.sentence;
    EXPECT_NE(one.sentence.find("rank 1"), std::string::npos) << one.sentence;
    EXPECT_NE(one.sentence.find("operation 0 (barrier)"), std::string::npos) << one.sentence;
  }
}

}  // namespace
}  // namespace tributary::test

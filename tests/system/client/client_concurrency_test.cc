// Many operations, many communicators, many threads.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"

namespace tributary::test {
namespace {

constexpr auto kForEver = -1;

TEST(Concurrency, ThousandsOfOutstandingOperationsEndInAnyOrderOfWaiting) {
  for (const int nranks : {1, 3}) {
    run_ranks(nranks, [&](tributary_comm* comm, int rank) {
      constexpr std::size_t kOperations = 3000;
      std::vector<std::int32_t> values(kOperations), results(kOperations);
      std::vector<tributary_request*> requests(kOperations);
      for (std::size_t i = 0; i < kOperations; ++i) {
        values[i] = static_cast<std::int32_t>(i) * (rank + 1);
        ASSERT_EQ(tributary_all_reduce(&values[i], &results[i], 1, TRIBUTARY_INT32, TRIBUTARY_SUM, comm, &requests[i]),
                  TRIBUTARY_OK)
            << last_error();
      }
      for (std::size_t i = 0; i < kOperations; ++i) {
        const std::size_t shuffled = (i * 1237) % kOperations;  // 1237 and 3000 have no common factor
        ASSERT_EQ(tributary_wait(requests[shuffled], kForEver), TRIBUTARY_OK) << last_error();
        ASSERT_EQ(results[shuffled], static_cast<std::int32_t>(shuffled) * nranks * (nranks + 1) / 2);
      }
    });
  }
}

TEST(Concurrency, MixedCollectivesAndMessagesOverlap) {
  run_ranks(4, [](tributary_comm* comm, int rank) {
    constexpr std::size_t kRounds = 40, kCount = 3001;
    struct Round {
      std::vector<float> sum_in, sum_out, gathered, sent, received;
    };
    std::vector<Round> rounds(kRounds);
    std::vector<tributary_request*> requests;
    const int next = (rank + 1) % 4, previous = (rank + 3) % 4;
    for (std::size_t i = 0; i < kRounds; ++i) {
      Round& r = rounds[i];
      r.sum_in.assign(kCount, static_cast<float>(i + static_cast<std::size_t>(rank)));
      r.sum_out.resize(kCount);
      r.gathered.resize(4);
      r.sent.assign(kCount * (i % 3), static_cast<float>(rank));
      r.received.resize(r.sent.size());
      ASSERT_EQ(tributary_recv(r.received.data(), r.received.size(), TRIBUTARY_FLOAT32, previous, comm,
                               &requests.emplace_back()),
                TRIBUTARY_OK);
      ASSERT_EQ(tributary_all_reduce(r.sum_in.data(), r.sum_out.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm,
                                     &requests.emplace_back()),
                TRIBUTARY_OK);
      ASSERT_EQ(tributary_send(r.sent.data(), r.sent.size(), TRIBUTARY_FLOAT32, next, comm, &requests.emplace_back()),
                TRIBUTARY_OK);
      ASSERT_EQ(tributary_all_gather(r.sum_in.data(), r.gathered.data(), 1, TRIBUTARY_FLOAT32, comm,
                                     &requests.emplace_back()),
                TRIBUTARY_OK);
    }
    for (tributary_request* request : requests)
      ASSERT_EQ(tributary_wait(request, kForEver), TRIBUTARY_OK) << last_error();
    for (std::size_t i = 0; i < kRounds; ++i) {
      const auto base = static_cast<float>(i);
      EXPECT_EQ(rounds[i].sum_out, std::vector<float>(kCount, 4 * base + 6));
      EXPECT_EQ(rounds[i].gathered, (std::vector<float>{base, base + 1, base + 2, base + 3}));
      EXPECT_EQ(rounds[i].received, std::vector<float>(rounds[i].sent.size(), static_cast<float>(previous)));
    }
  });
}

TEST(Concurrency, SeveralCommunicatorsRunAtOnceWithTheirOwnRanks) {
  constexpr int kCommunicators = 4, kRanks = 3;
  std::vector<tributary_unique_id> ids;
  for (int i = 0; i < kCommunicators; ++i) ids.push_back(make_id());
  in_threads(kCommunicators * kRanks, [&](int index) {
    const int group = index / kRanks, rank = index % kRanks;
    const tributary_config config = config_with(Milliseconds(20'000));
    tributary_comm* comm = nullptr;
    ASSERT_EQ(tributary_comm_init_rank_config(&comm, kRanks, &ids[static_cast<std::size_t>(group)], rank, &config),
              TRIBUTARY_OK)
        << last_error();
    for (int i = 0; i < 100; ++i) {
      const std::int64_t value = group * 1000 + i;
      std::int64_t sum = 0;
      ASSERT_EQ(tributary_all_reduce(&value, &sum, 1, TRIBUTARY_INT64, TRIBUTARY_SUM, comm, nullptr), TRIBUTARY_OK)
          << last_error();
      ASSERT_EQ(sum, kRanks * value);
    }
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << last_error();
  });
}

TEST(Concurrency, SeveralThreadsMaySubmitToOneCommunicatorAndWaitAtTheSameTime) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    constexpr int kThreads = 4, kMessages = 200;
    const int peer = 1 - rank;
    // The order between threads is not fixed, so all messages are equal.
    in_threads(kThreads, [&](int) {
      for (int i = 0; i < kMessages; ++i) {
        const std::uint64_t sent = 0x0123456789abcdefULL;
        std::uint64_t received = 0;
        tributary_request *send = nullptr, *recv = nullptr;
        ASSERT_EQ(tributary_recv(&received, 1, TRIBUTARY_UINT64, peer, comm, &recv), TRIBUTARY_OK) << last_error();
        ASSERT_EQ(tributary_send(&sent, 1, TRIBUTARY_UINT64, peer, comm, &send), TRIBUTARY_OK) << last_error();
        ASSERT_EQ(tributary_wait(recv, kForEver), TRIBUTARY_OK) << last_error();
        ASSERT_EQ(tributary_wait(send, kForEver), TRIBUTARY_OK) << last_error();
        ASSERT_EQ(received, sent);
      }
    });
  });
}

TEST(Concurrency, TestReportsTheEndAndATimeOutOfWaitLeavesTheRequestAlive) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    std::int32_t value = 7;
    if (rank == 0) {
      tributary_request* request = nullptr;
      ASSERT_EQ(tributary_recv(&value, 1, TRIBUTARY_INT32, 1, comm, &request), TRIBUTARY_OK);
      int done = 1;
      ASSERT_EQ(tributary_test(request, &done), TRIBUTARY_OK);
      EXPECT_EQ(done, 0);
      EXPECT_EQ(tributary_wait(request, 1'000'000), TRIBUTARY_ERROR_TIMED_OUT);
      EXPECT_NE(last_error().find("wait again"), std::string::npos) << last_error();
      EXPECT_EQ(tributary_wait(request, 0), TRIBUTARY_ERROR_TIMED_OUT);
      ASSERT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK);  // only now does rank 1 send
      while (done == 0) ASSERT_EQ(tributary_test(request, &done), TRIBUTARY_OK);
      EXPECT_EQ(value, 42);
      EXPECT_EQ(tributary_test(request, &done), TRIBUTARY_ERROR_BAD_ARGUMENT)
          << "a request is freed by the test that sees its end";
      EXPECT_EQ(tributary_wait(request, kForEver), TRIBUTARY_ERROR_BAD_ARGUMENT);
    } else {
      ASSERT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK);
      value = 42;
      ASSERT_EQ(tributary_send(&value, 1, TRIBUTARY_INT32, 0, comm, nullptr), TRIBUTARY_OK);
    }
  });
}

TEST(Concurrency, InfoMayBeAskedForWhileOperationsRun) {
  run_ranks(2, [](tributary_comm* comm, int) {
    std::vector<float> data(200'000, 1.0F);
    tributary_request* request = nullptr;
    ASSERT_EQ(
        tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
        TRIBUTARY_OK);
    tributary_info info{};
    info.struct_bytes = sizeof info;
    for (int i = 0; i < 20; ++i) ASSERT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK);
    ASSERT_EQ(tributary_wait(request, kForEver), TRIBUTARY_OK);
    ASSERT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK);
    const bool local = shares_memory();
    EXPECT_EQ(info.path, local ? TRIBUTARY_PATH_LOCAL : TRIBUTARY_PATH_FALLBACK);
    EXPECT_EQ(info.operations, 1U);
    EXPECT_EQ(local ? info.bytes_local : info.bytes_fallback, 800'000U);
    EXPECT_EQ(local ? info.bytes_fallback : info.bytes_local, 0U);
    EXPECT_EQ(info.bytes_in_network, 0U);
    EXPECT_NE(std::string(info.reason).find(local ? "one host" : "TRIBUTARY_MANAGER"), std::string::npos)
        << info.reason;
  });
}

}  // namespace
}  // namespace tributary::test

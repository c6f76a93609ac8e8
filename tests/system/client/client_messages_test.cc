// Messages with tags and from any rank, through the C and the C++ interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>
#include <vector>

#include "tests/system/client/group.h"
#include "tributary/tributary.hpp"

namespace tributary::test {
namespace {

constexpr int kRanks = 3;
using Numbers = std::vector<std::int32_t>;

Numbers numbers(std::size_t count, int from, int to, std::uint32_t tag) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = from * 1'000'003 + to * 10'007 + static_cast<std::int32_t>(tag * 101 + i);
  return values;
}

tributary_status send(tributary_comm* comm, const Numbers& values, int peer, std::uint32_t tag,
                      tributary_request** request) {
  return tributary_send_tagged(values.data(), values.size(), TRIBUTARY_INT32, peer, tag, comm, request);
}
tributary_status receive(tributary_comm* comm, Numbers& values, int peer, std::uint32_t tag, int* source,
                         tributary_request** request) {
  return tributary_recv_tagged(values.data(), values.size(), TRIBUTARY_INT32, peer, tag, source, comm, request);
}
#define ASSERT_GOOD(call) ASSERT_EQ(call, TRIBUTARY_OK) << last_error()

TEST(ClientMessages, AreReceivedInAnyOrderOfTags) {
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    const std::array<std::uint32_t, 4> tags{0, 1, 7, UINT32_MAX};
    for (const std::size_t count : {std::size_t{0}, std::size_t{100}, std::size_t{300'001}}) {
      const int to = (rank + 1) % kRanks, from = (rank + kRanks - 1) % kRanks;
      std::vector<Numbers> sent;
      std::vector<tributary_request*> requests;
      for (const std::uint32_t tag : tags) sent.push_back(numbers(count, rank, to, tag));
      for (std::size_t i = 0; i < tags.size(); ++i)
        ASSERT_GOOD(send(comm, sent[i], to, tags[i], &requests.emplace_back()));
      for (std::size_t i = tags.size(); i-- > 0;) {
        Numbers received(count);
        int source = -1;
        ASSERT_GOOD(receive(comm, received, from, tags[i], &source, nullptr));
        EXPECT_EQ(source, from);
        EXPECT_EQ(received, numbers(count, from, rank, tags[i]));
      }
      for (tributary_request* request : requests) ASSERT_GOOD(tributary_wait(request, -1));
    }
  });
}

TEST(ClientMessages, AreReceivedFromAnyRankThatIsNamedAfterwards) {
  for (const std::uint32_t tag : {0U, 3U}) {
    run_ranks(kRanks, [tag](tributary_comm* comm, int rank) {
      std::vector<Numbers> sent;
      std::vector<tributary_request*> requests;
      for (int peer = 0; peer < kRanks; ++peer) sent.push_back(numbers(50, rank, peer, tag));
      for (int peer = 0; peer < kRanks; ++peer)  // also to this rank itself
        ASSERT_GOOD(send(comm, sent[static_cast<std::size_t>(peer)], peer, tag, &requests.emplace_back()));
      std::set<int> sources;
      for (int i = 0; i < kRanks; ++i) {
        Numbers received(50);
        int source = -1;
        tributary_request* request = nullptr;
        ASSERT_GOOD(receive(comm, received, TRIBUTARY_ANY_SOURCE, tag, &source, i == 0 ? nullptr : &request));
        if (i == 1) {
          ASSERT_GOOD(tributary_wait(request, -1));
        }
        for (int done = i == 2 ? 0 : 1; done == 0;) {
          ASSERT_GOOD(tributary_test(request, &done));
        }
        EXPECT_EQ(received, numbers(50, source, rank, tag));
        sources.insert(source);
      }
      EXPECT_EQ(sources.size(), std::size_t{kRanks});
      for (tributary_request* request : requests) ASSERT_GOOD(tributary_wait(request, -1));
    });
  }
}

TEST(ClientMessages, PlainCallsReceiveFromAnyRankToo) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    std::int32_t value = 40 + rank, got = 0;
    if (rank == 0) {
      ASSERT_GOOD(tributary_send(&value, 1, TRIBUTARY_INT32, 1, comm, nullptr));
    } else {
      ASSERT_GOOD(tributary_recv(&got, 1, TRIBUTARY_INT32, TRIBUTARY_ANY_SOURCE, comm, nullptr));
      EXPECT_EQ(got, 40);
    }
  });
}

/// Collects outcomes that come on other threads.
struct Ends {
  struct One {
    Ends* all;
    int which;
  };
  static void done(void* context, const tributary_outcome* outcome) {
    const One& one = *static_cast<One*>(context);
    const std::lock_guard lock(one.all->mutex);
    one.all->ended.push_back(one.which);
    one.all->outcomes.push_back({outcome->status, outcome->sentence, outcome->peer});
    one.all->changed.notify_all();
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return ended.size() >= count; }));
  }
  struct Outcome {
    tributary_status status;
    std::string sentence;
    int peer;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> ended;
  std::vector<Outcome> outcomes;
};

// No thread waits in the library for these requests: they end nevertheless, in the order in which they finish.
TEST(ClientMessages, TellWhenTheyAreDone) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    Numbers first(10), second(10);
    if (rank == 1) {
      second = numbers(10, 1, 0, 2);
      ASSERT_GOOD(send(comm, second, 0, 2, nullptr));
      ASSERT_GOOD(receive(comm, first, 0, 3, nullptr, nullptr));  // rank 0 now has the message with tag 2
      first = numbers(10, 1, 0, 1);
      ASSERT_GOOD(send(comm, first, 0, 1, nullptr));
      return;
    }
    Ends ends;
    std::array<Ends::One, 2> which{Ends::One{&ends, 1}, Ends::One{&ends, 2}};
    std::array<tributary_request*, 2> requests{};
    ASSERT_GOOD(receive(comm, first, TRIBUTARY_ANY_SOURCE, 1, nullptr, &requests[0]));
    ASSERT_GOOD(receive(comm, second, 1, 2, nullptr, &requests[1]));
    for (std::size_t i = 0; i < 2; ++i) ASSERT_GOOD(tributary_when_done(requests[i], &Ends::done, &which[i]));
    EXPECT_EQ(tributary_when_done(requests[0], &Ends::done, &which[0]), TRIBUTARY_ERROR_BAD_ARGUMENT);
    ends.wait_for(1);
    EXPECT_EQ(second, numbers(10, 1, 0, 2));
    ASSERT_GOOD(send(comm, second, 1, 3, nullptr));
    ends.wait_for(2);
    EXPECT_EQ(ends.ended, (std::vector{2, 1}));
    EXPECT_EQ(first, numbers(10, 1, 0, 1));
    for (const auto& outcome : ends.outcomes) {
      EXPECT_EQ(outcome.status, TRIBUTARY_OK);
      EXPECT_EQ(outcome.sentence, "");
      EXPECT_EQ(outcome.peer, 1);
    }
    int done = 0;
    EXPECT_EQ(tributary_test(requests[0], &done), TRIBUTARY_ERROR_BAD_ARGUMENT) << "the request is freed";
  });
}

TEST(ClientMessages, TellOfTheCommunicatorsEnd) {
  // An abort before both ranks have begun would make the other rank's start fail.
  std::latch both_have_begun(2);
  run_ranks_without_end(2, [&](tributary_comm* comm, int rank) {
    both_have_begun.arrive_and_wait();
    Ends ends;
    Ends::One one{&ends, 1};
    Numbers values(10);
    tributary_request* request = nullptr;
    ASSERT_GOOD(receive(comm, values, TRIBUTARY_ANY_SOURCE, 1, nullptr, &request));
    ASSERT_GOOD(tributary_when_done(request, &Ends::done, &one));
    if (rank == 0) {
      EXPECT_EQ(tributary_comm_abort_because(comm, "this test wants it"), TRIBUTARY_OK);
    }
    ends.wait_for(1);
    EXPECT_EQ(ends.outcomes[0].status, TRIBUTARY_ERROR_ABORTED);
    if (rank == 1) {
      EXPECT_NE(ends.outcomes[0].sentence.find("this test wants it"), std::string::npos) << ends.outcomes[0].sentence;
      tributary_comm_destroy(comm);
    }
    EXPECT_EQ(ends.outcomes[0].peer, -1);
  });
}

TEST(ClientMessages, RefuseWrongArguments) {
  run_ranks(2, [](tributary_comm* comm, int rank) {
    Numbers values(4);
    for (const int peer : {-1, 2}) {
      EXPECT_EQ(receive(comm, values, peer, 1, nullptr, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
      EXPECT_NE(last_error().find("tributary_recv_tagged: peer is " + std::to_string(peer)), std::string::npos);
      EXPECT_EQ(send(comm, values, peer, 1, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    }
    EXPECT_EQ(send(comm, values, TRIBUTARY_ANY_SOURCE, 1, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_recv_tagged(nullptr, 4, TRIBUTARY_INT32, 0, 1, nullptr, comm, nullptr),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_when_done(nullptr, &Ends::done, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_when_done(nullptr, nullptr, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    // The library has sent none of these messages.
    values = numbers(4, rank, 1 - rank, 1);
    Numbers received(4);
    tributary_request* request = nullptr;
    ASSERT_GOOD(send(comm, values, 1 - rank, 1, &request));
    ASSERT_GOOD(receive(comm, received, TRIBUTARY_ANY_SOURCE, 1, nullptr, nullptr));
    EXPECT_EQ(received, numbers(4, 1 - rank, rank, 1));
    ASSERT_GOOD(tributary_wait(request, -1));
  });
}

TEST(ClientMessages, ADifferentTypeIsAMismatchThatNamesBothSides) {
  run_ranks_without_end(2, [](tributary_comm* comm, int rank) {
    Numbers values(4);
    const tributary_status status = rank == 0 ? send(comm, values, 1, 9, nullptr)
                                              : tributary_recv_tagged(values.data(), 4, TRIBUTARY_FLOAT32,
                                                                      TRIBUTARY_ANY_SOURCE, 9, nullptr, comm, nullptr);
    EXPECT_EQ(status, TRIBUTARY_ERROR_MISMATCH);
    EXPECT_NE(last_error().find("rank 0 sent 4 int32 with tag 9 to rank 1, which called recv for 4 float32"),
              std::string::npos)
        << last_error();
    tributary_comm_destroy(comm);
  });
}

TEST(ClientMessages, HaveTagsAndSourcesInCppToo) {
  const UniqueId id = UniqueId::create();
  in_threads(2, [&](int rank) {
    Communicator comm(2, UniqueId::from_bytes(id.bytes()), rank);
    std::vector<float> out{1.0F + static_cast<float>(rank), 2.0F}, in(2), late(2);
    if (rank == 0) {
      Request a = comm.start_send(out, 1, 5), b = comm.start_send(out, 1);
      a.wait();
      b.wait();
    } else {
      int source = -1;
      Request request = comm.start_recv(late, TRIBUTARY_ANY_SOURCE, 0, &source);
      EXPECT_EQ(comm.recv(in, TRIBUTARY_ANY_SOURCE, 5), 0);
      request.wait();
      EXPECT_EQ(source, 0);
      EXPECT_EQ(in[0], 1.0F);
      EXPECT_EQ(late[0], 1.0F);
    }
    comm.finalize();
  });
}

}  // namespace
}  // namespace tributary::test

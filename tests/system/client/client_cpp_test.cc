// The C++ wrapper gives the same results as the C API, with types, owning objects and exceptions.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/system/client/group.h"
#include "tributary/tributary.hpp"

namespace tributary::test {
namespace {

static_assert(!std::is_copy_constructible_v<Communicator> && std::is_nothrow_move_constructible_v<Communicator>);
static_assert(!std::is_copy_constructible_v<Request> && std::is_nothrow_move_constructible_v<Request>);
static_assert(dtype_of<std::int8_t> == TRIBUTARY_INT8 && dtype_of<unsigned char> == TRIBUTARY_UINT8);
static_assert(dtype_of<short> == TRIBUTARY_INT16 && dtype_of<std::uint16_t> == TRIBUTARY_UINT16);
static_assert(dtype_of<long> == TRIBUTARY_INT64 && dtype_of<unsigned long long> == TRIBUTARY_UINT64);
static_assert(dtype_of<const float> == TRIBUTARY_FLOAT32 && dtype_of<Bfloat16> == TRIBUTARY_BFLOAT16);

Config quick(Milliseconds timeout) {
  Config config;
  config.timeout = timeout;
  return config;
}

void run(int nranks, const std::function<void(Communicator& comm)>& body, Milliseconds timeout = Milliseconds(20'000)) {
  const UniqueId id = UniqueId::create();
  in_threads(nranks, [&](int rank) {
    try {
      Communicator comm(nranks, UniqueId::from_bytes(id.bytes()), rank, quick(timeout));
      EXPECT_EQ(comm.rank(), rank);
      EXPECT_EQ(comm.size(), nranks);
      body(comm);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "rank " << rank << ": " << e.what();
    }
  });
}

TEST(Cpp, EveryCollectiveGivesWhatItSays) {
  run(3, [](Communicator& comm) {
    const int rank = comm.rank();
    const std::vector<float> own{static_cast<float>(rank), 1.0F};
    std::array<float, 2> pair{};
    comm.all_reduce(own, pair, Op::sum);
    EXPECT_EQ(pair, (std::array<float, 2>{3, 3}));

    comm.reduce(own, rank == 2 ? View<float>(pair.data(), 2) : View<float>(), Op::max, 2);
    if (rank == 2) {
      EXPECT_EQ(pair, (std::array<float, 2>{2, 1}));
    }

    const std::uint16_t bits[] = {static_cast<std::uint16_t>(1U << rank)};
    std::uint16_t joined[1] = {};
    comm.all_reduce(bits, joined, Op::bor);
    EXPECT_EQ(joined[0], 7);

    const float far[] = {rank == 0 ? 1e30F : rank == 1 ? 1.0F : -1e30F};
    float sum[1] = {};
    comm.all_reduce(far, sum, Op::sum | Numerics::exact);
    EXPECT_EQ(sum[0], 1.0F);

    const PremultipliedSum scaled = comm.premultiplied_sum(static_cast<float>(rank + 1));
    comm.all_reduce(own, pair, scaled.op() | Numerics::exact);
    EXPECT_EQ(pair, (std::array<float, 2>{8, 6}));

    int number = rank == 1 ? 77 : 0;
    comm.broadcast(View<int>(&number, 1), 1);
    EXPECT_EQ(number, 77);

    const std::vector<std::int64_t> parts{1, 2, 3};
    std::int64_t mine[1] = {};
    comm.reduce_scatter(parts, mine, Op::prod);
    EXPECT_EQ(mine[0], std::int64_t{(rank + 1) * (rank + 1) * (rank + 1)});

    std::vector<std::int64_t> all(3);
    comm.all_gather(mine, all);
    EXPECT_EQ(all, (std::vector<std::int64_t>{1, 8, 27}));

    std::vector<std::uint8_t> to{10, 20, 30}, from(3);
    for (auto& value : to) value = static_cast<std::uint8_t>(value + rank);
    comm.all_to_all(to, from);
    EXPECT_EQ(from[1], 10 * (rank + 1) + 1);

    comm.gather(mine, rank == 0 ? View<std::int64_t>(all.data(), 3) : View<std::int64_t>(), 0);
    comm.scatter(rank == 0 ? View<const std::int64_t>(all.data(), 3) : View<const std::int64_t>(), mine, 0);
    EXPECT_EQ(mine[0], std::int64_t{(rank + 1) * (rank + 1) * (rank + 1)});

    double sent[] = {rank + 0.5}, received[1] = {};
    Request receiving = comm.start_recv(received, (rank + 2) % 3);
    comm.send(sent, (rank + 1) % 3);
    receiving.wait();
    EXPECT_EQ(received[0], (rank + 2) % 3 + 0.5);
    comm.barrier();
    EXPECT_EQ(comm.info().path, test::shares_memory() ? TRIBUTARY_PATH_LOCAL : TRIBUTARY_PATH_FALLBACK);
    comm.finalize();
  });
}

TEST(Cpp, RequestsMayBeTestedWaitedForAndLeftToTheirDestructor) {
  run(2, [](Communicator& comm) {
    std::vector<int> data(100'000, comm.rank());
    {
      const Request dropped = comm.start_all_reduce(data, data, Op::sum);
      EXPECT_TRUE(dropped.valid());
    }
    EXPECT_EQ(data, std::vector<int>(data.size(), 1)) << "the destructor waits";
    Request tested = comm.start_barrier();
    while (!tested.test()) std::this_thread::yield();
    EXPECT_FALSE(tested.valid());
    EXPECT_TRUE(tested.test());
    Request waited = comm.start_barrier();
    while (!waited.wait_for(std::chrono::milliseconds(1))) {
    }
    const Memory memory = comm.register_memory(data.data(), data.size() * sizeof(int));
  });
}

TEST(Cpp, ErrorsAreExceptionsWithStatusAndSentence) {
  run(1, [](Communicator& comm) {
    std::vector<float> two(2), three(3);
    try {
      comm.all_reduce(two, three, Op::sum);
      ADD_FAILURE() << "the sizes differ, and the call threw nothing";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), TRIBUTARY_ERROR_BAD_ARGUMENT);
    }
    try {
      comm.send(two, 7);
      ADD_FAILURE() << "there is no rank 7";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), TRIBUTARY_ERROR_BAD_ARGUMENT);
      EXPECT_NE(std::string(e.what()).find("peer is 7"), std::string::npos) << e.what();
    }
  });
}

TEST(Cpp, WaitForTellsItsOwnTimeOutFromTheOperations) {
  const auto timeout = patience(Milliseconds(600));
  run(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) {  // this rank never sends, and leaves only when the test says so
          std::vector<float> nothing(1);
          EXPECT_THROW(comm.recv(nothing, 0), Error);
          return;
        }
        std::vector<float> data(1);
        Request request = comm.start_recv(data, 1);
        EXPECT_FALSE(request.wait_for(std::chrono::milliseconds(1)));
        EXPECT_TRUE(request.valid());
        try {
          while (!request.wait_for(std::chrono::hours(1))) {
          }
          ADD_FAILURE() << "nothing was sent";
        } catch (const Error& e) {
          EXPECT_EQ(e.status(), TRIBUTARY_ERROR_TIMED_OUT) << e.what();
          EXPECT_FALSE(request.valid());
        }
      },
      timeout);
}

TEST(Cpp, AbortEndsTheOthersOperations) {
  run(2, [](Communicator& comm) {
    try {
      comm.barrier();  // an abort while rank 1 still joins would make its init fail
      if (comm.rank() == 0) return comm.abort();
      comm.barrier();
      ADD_FAILURE() << "rank 0 did not come";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), TRIBUTARY_ERROR_ABORTED) << e.what();
    }
  });
}

}  // namespace
}  // namespace tributary::test

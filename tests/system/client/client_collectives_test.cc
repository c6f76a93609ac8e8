// Every collective, dtype, op and form, with 1 to 5 ranks, against exact values.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"
#include "tributary/protocol/numerics.h"

namespace tributary::test {
namespace {

struct Shape {
  Collective collective;
  DType dtype;
  ReduceOp op;
  std::size_t count;
  int root;
  bool in_place;
};

std::string to_text(const Shape& s, int rank, int nranks) {
  return std::string(to_string(s.collective)) + " of " + std::to_string(s.count) + " " +
         std::string(to_string(s.dtype)) + " (" + std::string(to_string(s.op)) + "), root " + std::to_string(s.root) +
         (s.in_place ? ", in place" : "") + ", rank " + std::to_string(rank) + " of " + std::to_string(nranks);
}

bool sends_all_parts(Collective c) {
  return c == Collective::reduce_scatter || c == Collective::all_to_all || c == Collective::scatter;
}
bool receives_all_parts(Collective c) {
  return c == Collective::all_gather || c == Collective::all_to_all || c == Collective::gather;
}
bool is_reduction(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter;
}

Bytes input(const Shape& s, int rank, int nranks) {
  const std::size_t elements = s.count * (sends_all_parts(s.collective) ? static_cast<std::size_t>(nranks) : 1);
  if (is_reduction(s.collective)) return reducible(s.dtype, s.op, elements, rank);
  return any_bytes(elements * size_of(s.dtype), rank, static_cast<int>(s.collective));
}

/// Returns the bytes that `rank` must have in recv after the call; empty if it does not use recv.
Bytes expected(const Shape& s, int rank, int nranks) {
  std::vector<Bytes> inputs;
  for (int r = 0; r < nranks; ++r) inputs.push_back(input(s, r, nranks));
  const std::size_t bytes = s.count * size_of(s.dtype);
  const auto own = static_cast<std::size_t>(rank), root = static_cast<std::size_t>(s.root);
  switch (s.collective) {
    case Collective::all_reduce:
      return reduced(s.dtype, s.op, inputs);
    case Collective::reduce:
      return rank == s.root ? reduced(s.dtype, s.op, inputs) : Bytes{};
    case Collective::reduce_scatter:
      return part(reduced(s.dtype, s.op, inputs), own * bytes, bytes);
    case Collective::broadcast:
      return inputs[root];
    case Collective::all_gather:
      return joined(inputs);
    case Collective::gather:
      return rank == s.root ? joined(inputs) : Bytes{};
    case Collective::scatter:
      return part(inputs[root], own * bytes, bytes);
    case Collective::all_to_all: {
      std::vector<Bytes> parts;
      for (const Bytes& from : inputs) parts.push_back(part(from, own * bytes, bytes));
      return joined(parts);
    }
    case Collective::barrier:
      return {};
  }
  return {};
}

/// The buffers of one rank's call. They are separate, or one lies within the other by the rules of tributary.h.
struct Buffers {
  Buffers(const Shape& s, int rank, int nranks) {
    const Bytes data = input(s, rank, nranks);
    const std::size_t bytes = s.count * size_of(s.dtype), offset = static_cast<std::size_t>(rank) * bytes;
    const std::size_t result = bytes * (receives_all_parts(s.collective) ? static_cast<std::size_t>(nranks) : 1);
    const bool by_root = s.collective == Collective::gather || s.collective == Collective::scatter;
    if (!s.in_place || (by_root && rank != s.root)) {
      storage = joined({data, Bytes(result, std::byte{0xAB})});
      send = storage.data();
      recv = storage.data() + data.size();
    } else if (receives_all_parts(s.collective)) {
      storage.assign(result, std::byte{0xAB});
      std::ranges::copy(data, storage.begin() + static_cast<std::ptrdiff_t>(offset));
      recv = storage.data();
      send = recv + offset;
    } else {
      storage = data;
      send = storage.data();
      recv = send + (sends_all_parts(s.collective) ? offset : 0);
    }
  }
  Bytes storage;
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};

tributary_status call(const Shape& s, const Buffers& b, tributary_comm* comm, tributary_request** request) {
  const auto dtype = static_cast<tributary_dtype>(s.dtype);
  const auto op = static_cast<tributary_op>(s.op);
  switch (s.collective) {
    case Collective::all_reduce:
      return tributary_all_reduce(b.send, b.recv, s.count, dtype, op, comm, request);
    case Collective::reduce:
      return tributary_reduce(b.send, b.recv, s.count, dtype, op, s.root, comm, request);
    case Collective::reduce_scatter:
      return tributary_reduce_scatter(b.send, b.recv, s.count, dtype, op, comm, request);
    case Collective::broadcast:
      return tributary_broadcast(b.send, b.recv, s.count, dtype, s.root, comm, request);
    case Collective::all_gather:
      return tributary_all_gather(b.send, b.recv, s.count, dtype, comm, request);
    case Collective::gather:
      return tributary_gather(b.send, b.recv, s.count, dtype, s.root, comm, request);
    case Collective::scatter:
      return tributary_scatter(b.send, b.recv, s.count, dtype, s.root, comm, request);
    case Collective::all_to_all:
      return tributary_all_to_all(b.send, b.recv, s.count, dtype, comm, request);
    case Collective::barrier:
      return tributary_barrier(comm, request);
  }
  return TRIBUTARY_ERROR_INTERNAL;
}

void run_and_check(const Shape& s, tributary_comm* comm, int rank, int nranks) {
  Buffers buffers(s, rank, nranks);
  const Bytes before = buffers.storage;
  ASSERT_EQ(call(s, buffers, comm, nullptr), TRIBUTARY_OK) << to_text(s, rank, nranks) << ": " << last_error();
  const Bytes right = expected(s, rank, nranks);
  EXPECT_EQ(difference(right, {buffers.recv, right.size()}), "") << to_text(s, rank, nranks);
  if (buffers.recv < buffers.send || s.in_place) return;
  const auto input_bytes = static_cast<std::size_t>(buffers.recv - buffers.send);
  EXPECT_EQ(difference(part(before, 0, input_bytes), {buffers.send, input_bytes}), "")
      << to_text(s, rank, nranks) << ": the input was changed";
}

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (std::uint8_t i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, ReduceEveryDtypeWithEveryOpToTheExactValue) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    for (const Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
      for (const DType dtype : all_dtypes()) {
        for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
          if (!is_defined(ReduceOp{op}, dtype)) continue;
          for (const bool in_place : {false, true}) {
            for (const std::size_t count : {1UL, 37UL, 5'003UL}) {
              run_and_check(
                  {collective, dtype, static_cast<ReduceOp>(op), count, static_cast<int>(count) % nranks, in_place},
                  comm, rank, nranks);
            }
          }
        }
      }
    }
  });
}

TEST_P(Collectives, MoveEveryDtypeUnchanged) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    for (const Collective collective : {Collective::broadcast, Collective::all_gather, Collective::all_to_all,
                                        Collective::gather, Collective::scatter}) {
      for (const DType dtype : all_dtypes()) {
        for (const bool in_place : {false, true}) {
          if (in_place && collective == Collective::all_to_all) continue;
          for (const std::size_t count : {1UL, 333UL, 9'011UL}) {
            run_and_check({collective, dtype, ReduceOp::sum, count, static_cast<int>(count + 1) % nranks, in_place},
                          comm, rank, nranks);
          }
        }
      }
    }
  });
}

TEST_P(Collectives, TakeAnyCount) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    for (std::uint8_t c = 0; c < kCollectiveCount; ++c) {
      for (const std::size_t count : {0UL, 2UL, 3UL, 4UL, 5UL, 1023UL, 65'537UL, 400'009UL}) {
        for (const int root : {static_cast<int>(count) % nranks}) {
          const auto collective = static_cast<Collective>(c);
          run_and_check({collective, DType::float32, ReduceOp::sum, count, root,
                         collective != Collective::all_to_all && count % 2 == 0},
                        comm, rank, nranks);
        }
      }
    }
  });
}

// The sum of any two of these inputs does not fit into its type.
TEST_P(Collectives, AverageOfTheLargestValuesIsFinite) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    for (const DType dtype :
         {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::float8_e4m3, DType::float8_e5m2}) {
      for (const std::size_t count : {1UL, 5'000UL, 300'007UL}) {
        const Bytes input = largest_values(dtype, count);
        Bytes all(input.size()), one(input.size());
        const auto type = static_cast<tributary_dtype>(dtype);
        ASSERT_EQ(tributary_all_reduce(input.data(), all.data(), count, type, TRIBUTARY_AVG, comm, nullptr),
                  TRIBUTARY_OK)
            << last_error();
        ASSERT_EQ(tributary_reduce(input.data(), one.data(), count, type, TRIBUTARY_AVG, nranks - 1, comm, nullptr),
                  TRIBUTARY_OK)
            << last_error();
        // float8 rounds at each step, by up to an eighth.
        const double largest = least(dtype, input);
        EXPECT_GE(least(dtype, all), 0.7 * largest) << to_string(dtype);
        EXPECT_LE(least(dtype, all), largest) << to_string(dtype);
        if (rank != nranks - 1) continue;
        EXPECT_GE(least(dtype, one), 0.7 * largest) << to_string(dtype);
        EXPECT_LE(least(dtype, one), largest) << to_string(dtype);
      }
    }
  });
}

TEST_P(Collectives, TakeNullBuffersWhereThereIsNoElement) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    const auto i8 = TRIBUTARY_INT8;
    EXPECT_EQ(tributary_all_reduce(nullptr, nullptr, 0, i8, TRIBUTARY_SUM, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_reduce(nullptr, nullptr, 0, i8, TRIBUTARY_SUM, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_broadcast(nullptr, nullptr, 0, i8, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_reduce_scatter(nullptr, nullptr, 0, i8, TRIBUTARY_MAX, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_all_gather(nullptr, nullptr, 0, i8, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_all_to_all(nullptr, nullptr, 0, i8, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_gather(nullptr, nullptr, 0, i8, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_scatter(nullptr, nullptr, 0, i8, 0, comm, nullptr), TRIBUTARY_OK);
    // Buffers that a rank does not use may be NULL too.
    std::int8_t value = static_cast<std::int8_t>(rank + 1), result = 0;
    std::vector<std::int8_t> all(static_cast<std::size_t>(nranks));
    const bool root = rank == 0;
    EXPECT_EQ(tributary_reduce(&value, root ? &result : nullptr, 1, i8, TRIBUTARY_MAX, 0, comm, nullptr), TRIBUTARY_OK);
    if (root) {
      EXPECT_EQ(result, nranks);
    }
    EXPECT_EQ(tributary_broadcast(root ? &value : nullptr, &result, 1, i8, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(result, 1);
    EXPECT_EQ(tributary_gather(&value, root ? all.data() : nullptr, 1, i8, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(tributary_scatter(root ? all.data() : nullptr, &result, 1, i8, 0, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(result, rank + 1);
  });
}

TEST_P(Collectives, SendAndReceiveBetweenAllPairsInBothDirectionsAtOnce) {
  const int nranks = GetParam();
  run_ranks(nranks, [&](tributary_comm* comm, int rank) {
    for (const std::size_t count : {0UL, 1UL, 1000UL, 700'001UL}) {
      std::vector<Bytes> sent, received;
      std::vector<tributary_request*> requests;
      for (int peer = 0; peer < nranks; ++peer) {
        sent.push_back(any_bytes(count, rank, peer));
        received.emplace_back(count);
      }
      for (int peer = 0; peer < nranks; ++peer) {
        const auto p = static_cast<std::size_t>(peer);
        ASSERT_EQ(tributary_recv(received[p].data(), count, TRIBUTARY_UINT8, peer, comm, &requests.emplace_back()),
                  TRIBUTARY_OK)
            << last_error();
        ASSERT_EQ(tributary_send(sent[p].data(), count, TRIBUTARY_UINT8, peer, comm, &requests.emplace_back()),
                  TRIBUTARY_OK)
            << last_error();
      }
      for (tributary_request* request : requests) ASSERT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
      for (int peer = 0; peer < nranks; ++peer) {
        EXPECT_EQ(difference(any_bytes(count, peer, rank), received[static_cast<std::size_t>(peer)]), "")
            << "from rank " << peer;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace tributary::test

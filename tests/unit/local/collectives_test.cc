// Every collective of ranks on one host gives the result of a few lines of scalar code, with the same bits on every
// rank.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "kernels/reference/reduce.h"
#include "tests/unit/local/threads.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client::local {
namespace {

using Bytes = std::vector<std::byte>;

/// Returns bits that mean a number of moderate size in every dtype: positive and negative floats between about 0.5 and
/// 8.
Bytes numbers(DType dtype, std::size_t count, std::uint32_t rank, std::uint64_t salt) {
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mixed = (i * 2654435761U + rank * 40503U + salt * 97U) ^ (i >> 5);
    std::byte* at = bytes.data() + i * size_of(dtype);
    const auto store = [at](auto value) { std::memcpy(at, &value, sizeof value); };
    const std::uint64_t sign = mixed & 1, exponent = mixed >> 1 & 3, fraction = mixed >> 3;
    switch (dtype) {
      case DType::float64:
        store((sign << 63) | ((1022 + exponent) << 52) | (fraction & ((std::uint64_t{1} << 52) - 1)));
        break;
      case DType::float32:
        store(static_cast<std::uint32_t>((sign << 31) | ((126 + exponent) << 23) | (fraction & 0x7FFFFF)));
        break;
      case DType::float16:
        store(static_cast<std::uint16_t>((sign << 15) | ((14 + exponent) << 10) | (fraction & 0x3FF)));
        break;
      case DType::bfloat16:
        store(static_cast<std::uint16_t>((sign << 15) | ((126 + exponent) << 7) | (fraction & 0x7F)));
        break;
      case DType::float8_e4m3:
        store(static_cast<std::uint8_t>((sign << 7) | ((6 + exponent) << 3) | (fraction & 7)));
        break;
      case DType::float8_e5m2:
        store(static_cast<std::uint8_t>((sign << 7) | ((14 + exponent) << 2) | (fraction & 3)));
        break;
      default:
        for (std::size_t b = 0; b < size_of(dtype); ++b) at[b] = static_cast<std::byte>(mixed >> (8 * b));
    }
  }
  return bytes;
}

struct Case {
  Collective collective = Collective::all_reduce;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t ranks = 2, root = 0;
  std::size_t count = 0;
  bool in_place = false;
  std::uint64_t salt = 0;

  [[nodiscard]] std::string text() const {
    return to_string(Signature{collective, dtype, op, root, count}) + ", " + std::to_string(ranks) + " ranks" +
           (in_place ? ", in place" : "");
  }
  [[nodiscard]] std::size_t bytes() const { return count * size_of(dtype); }
  [[nodiscard]] bool many_sent() const {
    return collective == Collective::reduce_scatter || collective == Collective::all_to_all ||
           collective == Collective::scatter;
  }
  [[nodiscard]] Bytes input(std::uint32_t rank) const {
    return numbers(dtype, count * (many_sent() ? ranks : 1), rank, salt);
  }
  [[nodiscard]] Bytes part_of(const Bytes& all, std::uint32_t part) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part * bytes());
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes())};
  }
  /// Returns the bytes that `rank` gets; empty if it gets none.
  [[nodiscard]] Bytes expected(std::uint32_t rank) const {
    std::vector<Bytes> in;
    for (std::uint32_t r = 0; r < ranks; ++r) in.push_back(input(r));
    const auto reduced = [&] {
      std::vector<const void*> inputs;
      for (const Bytes& one : in) inputs.push_back(one.data());
      Bytes out(in[0].size());
      kernels::reference::reduce(dtype, op, inputs, out.data(), out.size() / size_of(dtype),
                                 op == ReduceOp::avg ? ranks : 1);
      return out;
    };
    const auto gathered = [&](auto part) {
      Bytes all;
      for (std::uint32_t r = 0; r < ranks; ++r) {
        const Bytes one = part(r);
        all.insert(all.end(), one.begin(), one.end());
      }
      return all;
    };
    switch (collective) {
      case Collective::all_reduce:
        return reduced();
      case Collective::reduce:
        return rank == root ? reduced() : Bytes();
      case Collective::reduce_scatter:
        return part_of(reduced(), rank);
      case Collective::broadcast:
        return in[root];
      case Collective::all_gather:
        return gathered([&](std::uint32_t r) { return in[r]; });
      case Collective::gather:
        return rank == root ? gathered([&](std::uint32_t r) { return in[r]; }) : Bytes();
      case Collective::all_to_all:
        return gathered([&](std::uint32_t r) { return part_of(in[r], rank); });
      case Collective::scatter:
        return part_of(in[root], rank);
      case Collective::barrier:
        return {};
    }
    return {};
  }
};

/// Buffers by the rules of in-place calls, and the call over them.
struct Buffers {
  Buffers(const Case& c, std::uint32_t rank) : send(c.input(rank)), recv(c.expected(rank).size(), std::byte{0xEE}) {
    in_place = c.in_place && !recv.empty() && c.collective != Collective::all_to_all &&
               (c.collective != Collective::broadcast && c.collective != Collective::scatter ? true : rank == c.root);
    from = send.data();
    to = recv.data();
    if (!in_place) return;
    const std::size_t own = rank * c.bytes();
    switch (c.collective) {
      case Collective::all_gather:
      case Collective::gather:
        std::memcpy(recv.data() + own, send.data(), send.size());
        from = recv.data() + own;
        break;
      case Collective::reduce_scatter:
      case Collective::scatter:
        to = send.data() + own;
        break;
      default:
        std::memcpy(recv.data(), send.data(), send.size());
        from = recv.data();
    }
  }
  Bytes send, recv;
  const std::byte* from;
  std::byte* to;
  bool in_place;
};

Call call_of(const Case& c, Buffers& buffers) {
  return {.signature = {c.collective, c.dtype, c.op, c.root, c.count},
          .send = buffers.from,
          .recv = buffers.to,
          .in_place = buffers.in_place};
}

void check(LocalGroup& group, const Case& c) {
  Buffers buffers(c, group.rank());
  const Bytes expected = c.expected(group.rank());
  const Bytes before = buffers.send;
  const Status& status = group.run(call_of(c, buffers));
  ASSERT_TRUE(status) << c.text() << ": " << status.error().message;
  if (!expected.empty()) {  // memcmp takes no null pointer
    ASSERT_EQ(std::memcmp(expected.data(), buffers.to, expected.size()), 0) << c.text() << ", rank " << group.rank();
  }
  if (!buffers.in_place) {
    ASSERT_EQ(buffers.send, before) << c.text();
  }
}

constexpr std::array kAll = {Collective::all_reduce,     Collective::reduce,     Collective::broadcast,
                             Collective::reduce_scatter, Collective::all_gather, Collective::barrier,
                             Collective::all_to_all,     Collective::gather,     Collective::scatter};

void check_everything(LocalGroup& group, DType dtype, ReduceOp op, const std::vector<std::size_t>& counts) {
  std::uint64_t salt = 0;
  for (const Collective collective : kAll) {
    for (const std::size_t count : counts) {
      for (const bool in_place : {false, true}) {
        ++salt;
        check(group, {.collective = collective,
                      .dtype = dtype,
                      .op = op,
                      .ranks = group.ranks(),
                      .root = static_cast<std::uint32_t>(salt % group.ranks()),
                      .count = collective == Collective::barrier ? 0 : count,
                      .in_place = in_place,
                      .salt = salt});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Around the sizes that fit into a note's line (40 bytes), into a note (256), into a chunk (8192), and into a row (4
// chunks).
const std::vector<std::size_t> kCounts{0, 1, 10, 11, 64, 65, 2049, 8200};

TEST(LocalCollectives, GiveTheReferencesBitsForOneToNineRanks) {
  for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
    run_ranks(settings_of(ranks),
              [](LocalGroup& group) { check_everything(group, DType::float32, ReduceOp::sum, kCounts); });
  }
}

TEST(LocalCollectives, GiveTheReferencesBitsForEveryTypeAndOperator) {
  run_ranks(settings_of(3), [](LocalGroup& group) {
    for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
        if (!is_defined(ReduceOp{op}, DType{dtype})) continue;
        check_everything(group, static_cast<DType>(dtype), static_cast<ReduceOp>(op), {3, 5001});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(LocalCollectives, CombineMoreRanksThanOnePassOfTheKernelsTakes) {
  GroupSettings settings = settings_of(70);
  settings.chunk_bytes = 65536;
  run_ranks(settings, [](LocalGroup& group) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{700}}) {
      for (const auto collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
        check(group, {.collective = collective, .dtype = DType::int32, .ranks = 70, .count = count, .in_place = true});
      }
    }
  });
}

TEST(LocalCollectives, AddExactlyTheInputsOfMoreRanksThanOnePassOfTheKernelsTakes) {
  GroupSettings settings = settings_of(70);
  settings.chunk_bytes = 65536;
  run_ranks(settings, [](LocalGroup& group) {
    for (const std::uint64_t count : {3U, 700U, 5000U}) {
      // Rounded sums lose the ones beside the large values, in every order but one.
      const bool large = group.rank() == 3 || group.rank() == 66;
      std::vector<float> values(count, large ? (group.rank() == 3 ? 1e30F : -1e30F) : 1.0F);
      const auto data = std::as_writable_bytes(std::span(values));
      const Status& status = group.run({.signature = {Collective::all_reduce, DType::float32, kExactSum, 0, count},
                                        .send = data.data(),
                                        .recv = data.data(),
                                        .in_place = true});
      ASSERT_TRUE(status) << status.error().message;
      for (const float value : values) ASSERT_EQ(value, 68.0F) << count;
    }
  });
}

TEST(LocalCollectives, MultiplyInTheOrderOfTheRanks) {
  GroupSettings settings = settings_of(70);
  settings.chunk_bytes = 65536;
  run_ranks(settings, [](LocalGroup& group) {
    for (const std::uint64_t count : {3U, 700U, 5000U}) {
      // In another order the product becomes infinite on its way, or has another last bit.
      const auto of = [](std::uint32_t rank) { return rank == 0 ? 1e-300 : rank < 3 ? 1e200 : 1.0 + rank / 997.0; };
      double expected = 1;
      for (std::uint32_t rank = 0; rank < 70; ++rank) expected *= of(rank);
      std::vector<double> values(count, of(group.rank()));
      const auto data = std::as_writable_bytes(std::span(values));
      const Status& status =
          group.run({.signature = {Collective::all_reduce, DType::float64, kOrderedProduct, 0, count},
                     .send = data.data(),
                     .recv = data.data(),
                     .in_place = true});
      ASSERT_TRUE(status) << status.error().message;
      for (const double value : values) ASSERT_EQ(value, expected) << count;
    }
  });
}

// With rows of the ordinary size, only results of long vectors are written past the caches.
TEST(LocalCollectives, GiveTheReferencesBitsForLongVectors) {
  GroupSettings settings = settings_of(2);
  settings.note_bytes = 8192;
  settings.chunk_bytes = 262144;
  run_ranks(settings, [](LocalGroup& group) {
    for (const std::size_t count : {std::size_t{1} << 20, (std::size_t{1} << 21) + 77})
      check(group, {.ranks = 2, .count = count, .salt = count});
  });
}

// One rank is slow, so that the other ranks run ahead as far as the rows let them, over operations of several kinds.
TEST(LocalCollectives, AFastRankNeverOverwritesWhatASlowOneReads) {
  run_ranks(settings_of(3), [](LocalGroup& group) {
    std::uint64_t state = 1;
    for (std::uint64_t i = 0; i < 300; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
      const auto pick = [&](unsigned shift, std::uint64_t below) { return (state >> shift) % below; };
      if (pick(60, 3) == group.rank()) std::this_thread::yield();
      const Case c{.collective = kAll[pick(33, kAll.size())],
                   .ranks = 3,
                   .root = static_cast<std::uint32_t>(pick(40, 3)),
                   .count = pick(45, 2) == 0 ? pick(47, 60) : pick(47, 9000),
                   .in_place = pick(30, 2) == 0,
                   .salt = i};
      check(group, c);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(LocalCollectives, GoOnWhenAnotherThreadTakesTheCallOver) {
  run_ranks(settings_of(2), [](LocalGroup& group) {
    for (int i = 0; i < 50; ++i) {
      const Case c{.ranks = 2, .count = 30000, .salt = static_cast<std::uint64_t>(i)};
      Buffers buffers(c, group.rank());
      group.begin(call_of(c, buffers));
      bool ended = group.advance();
      std::thread other([&] {
        while (!ended) ended = group.advance();
      });
      other.join();
      ASSERT_TRUE(group.outcome());
      ASSERT_EQ(buffers.recv, c.expected(group.rank()));
    }
  });
}

}  // namespace
}  // namespace tributary::client::local

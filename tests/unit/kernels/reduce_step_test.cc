// Averages over several steps have the same bits on every target, are finite after any number of steps, and are as
// exact as in one step.
#include "tributary/kernels/reduce_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/reference/float_format.h"
#include "kernels/reference/reduce.h"
#include "tests/unit/kernels/values.h"

namespace tributary::kernels {
namespace {

constexpr DType kFloats[] = {DType::float16, DType::bfloat16,    DType::float32,
                             DType::float64, DType::float8_e4m3, DType::float8_e5m2};

using Array = std::vector<std::byte>;

/// Convert an element of these types to float64, and back.
double decoded(DType dtype, const std::byte* at) {
  if (dtype == DType::float64) return std::bit_cast<double>(*reinterpret_cast<const std::uint64_t*>(at));
  if (dtype == DType::float32) return double{std::bit_cast<float>(*reinterpret_cast<const std::uint32_t*>(at))};
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  return double{reference::decode(reference::format_of(dtype), bits)};
}
Array encoded(DType dtype, double value, std::size_t count = 1) {
  Array array(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* at = array.data() + i * size_of(dtype);
    if (dtype == DType::float64) {
      std::memcpy(at, &value, sizeof value);
    } else if (const auto narrow = static_cast<float>(value); dtype == DType::float32) {
      std::memcpy(at, &narrow, sizeof narrow);
    } else {
      const std::uint32_t bits = reference::encode(reference::format_of(dtype), narrow);
      std::memcpy(at, &bits, size_of(dtype));
    }
  }
  return array;
}

using reference::largest_of;

/// Reduces by random trees: reduces neighbours, at most seven at once, until one array is left.
class RandomTree {
 public:
  RandomTree(DType dtype, std::vector<Array> values, std::mt19937_64& random) : dtype_(dtype), random_(random) {
    all_ = static_cast<std::uint32_t>(values.size());
    for (Array& value : values) parts_.push_back({std::move(value), 1});
  }

  Array average() {
    while (parts_.size() > 1) {
      const std::size_t most = std::min<std::size_t>(parts_.size(), 7);
      const std::size_t n = std::uniform_int_distribution<std::size_t>(2, most)(random_);
      combine(std::uniform_int_distribution<std::size_t>(0, parts_.size() - n)(random_), n);
    }
    return parts_.front().values;
  }

 private:
  struct Part {
    Array values;
    std::uint32_t ranks;
  };

  void combine(std::size_t first, std::size_t n) {
    std::vector<const void*> inputs;
    std::vector<std::uint32_t> ranks;
    std::uint32_t sum = 0;
    for (std::size_t i = first; i < first + n; ++i) {
      inputs.push_back(parts_[i].values.data());
      ranks.push_back(parts_[i].ranks);
      sum += parts_[i].ranks;
    }
    Array out(parts_[first].values.size());
    reduce_step(dtype_, ReduceOp::avg, inputs, out.data(), out.size() / size_of(dtype_),
                {.divisor = sum == all_ ? all_ : 1, .ranks = ranks});
    parts_[first] = {std::move(out), sum};
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                 parts_.begin() + static_cast<std::ptrdiff_t>(first + n));
  }

  DType dtype_;
  std::mt19937_64& random_;
  std::uint32_t all_ = 0;
  std::vector<Part> parts_;
};

class AverageInSteps : public testing::TestWithParam<DType> {
 protected:
  [[nodiscard]] static DType dtype() { return GetParam(); }
};

TEST_P(AverageInSteps, IsTheLargestValueWhereAllRanksHaveIt) {
  std::mt19937_64 random(1);
  for (std::uint32_t ranks = 2; ranks <= 70; ++ranks) {
    for (const double sign : {1.0, -1.0}) {
      const Array value = encoded(dtype(), sign * largest_of(dtype()), 37);
      RandomTree tree(dtype(), std::vector(ranks, value), random);
      const Array average = tree.average();
      for (std::size_t i = 0; i < 37; ++i) {
        const double got = decoded(dtype(), average.data() + i * size_of(dtype()));
        ASSERT_TRUE(std::isfinite(got)) << ranks << " ranks";
        // Each step rounds once; if it rounds down, the average may end a few units below.
        ASSERT_GE(std::abs(got), largest_of(dtype()) * (dtype() == DType::float8_e5m2 ? 0.7 : 0.85))
            << ranks << " ranks";
      }
    }
  }
}

// Use different values near the largest: sums and divisions then round up as well as down.
TEST_P(AverageInSteps, AnAverageOfFiniteValuesIsFinite) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> near(0.9, 1.0);
  for (int trial = 0; trial < 400; ++trial) {
    const auto ranks = std::uniform_int_distribution<std::uint32_t>(2, 40)(random);
    std::vector<Array> values;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      Array array;
      for (int i = 0; i < 11; ++i) {
        const Array one = encoded(dtype(), near(random) * largest_of(dtype()));
        array.insert(array.end(), one.begin(), one.end());
      }
      values.push_back(std::move(array));
    }
    const Array average = RandomTree(dtype(), std::move(values), random).average();
    for (std::size_t i = 0; i < 11; ++i)
      ASSERT_TRUE(std::isfinite(decoded(dtype(), average.data() + i * size_of(dtype())))) << ranks << " ranks";
  }
}

// Small whole numbers are summed without rounding, so only the division rounds.
TEST_P(AverageInSteps, HasTheBitsOfASumDividedOnceWhereTheSumsAreExact) {
  std::mt19937_64 random(3);
  const int most = size_of(dtype()) == 1 ? 1 : 15;
  for (int trial = 0; trial < 400; ++trial) {
    const auto ranks = std::uniform_int_distribution<std::uint32_t>(2, size_of(dtype()) == 1 ? 4 : 8)(random);
    std::vector<Array> values;
    std::vector<const void*> inputs;
    for (std::uint32_t r = 0; r < ranks; ++r)
      values.push_back(encoded(dtype(), std::uniform_int_distribution<int>(-most, most)(random)));
    for (const Array& value : values) inputs.push_back(value.data());
    Array expected(size_of(dtype()));
    reference::reduce(dtype(), ReduceOp::avg, inputs, expected.data(), 1, ranks);
    const Array average = RandomTree(dtype(), values, random).average();
    ASSERT_EQ(decoded(dtype(), average.data()), decoded(dtype(), expected.data())) << ranks << " ranks";
  }
}

TEST_P(AverageInSteps, KeepsInfinitiesNansAndTheSignOfZero) {
  std::mt19937_64 random(4);
  const auto average_of = [&](std::initializer_list<double> list) {
    std::vector<Array> values;
    for (const double v : list) values.push_back(encoded(dtype(), v));
    const Array average = RandomTree(dtype(), values, random).average();
    return decoded(dtype(), average.data());
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(average_of({1, 2, std::numeric_limits<double>::quiet_NaN(), 4, 5})));
  EXPECT_TRUE(std::isnan(average_of({kInfinity, 0, -kInfinity, 1, 1})));
  const double zero = average_of({-0.0, -0.0, -0.0});
  EXPECT_TRUE(zero == 0 && std::signbit(zero));
  EXPECT_FALSE(std::signbit(average_of({-0.0, 0.0, -0.0})));
  const double infinite = average_of({1, kInfinity, 3});
  EXPECT_TRUE(dtype() == DType::float8_e4m3 ? std::isnan(infinite) : infinite == kInfinity) << infinite;
}

TEST_P(AverageInSteps, WeightedSumsHaveTheReferencesBitsOnEveryTarget) {
  std::mt19937_64 random(5);
  for (const std::size_t count : {1U, 3U, 16U, 31U, 64U, 129U, 1003U}) {
    for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 8U, 64U}) {
      std::vector<Array> values;
      std::vector<const void*> inputs;
      std::vector<double> weights;
      for (std::size_t k = 0; k < n; ++k) {
        values.push_back(test::values(dtype(), count, random));
        weights.push_back(std::ldexp(1.0 + double(random() % 3), -static_cast<int>(random() % 9)));
      }
      for (const Array& value : values) inputs.push_back(value.data());
      for (const double quotient : {1.0, 0.5, 0.75, 7.0 / 8}) {
        Array expected(count * size_of(dtype()));
        reference::weighted_sum(dtype(), inputs, weights.data(), quotient, expected.data(), count);
        for (const Target target : available_targets()) {
          for (const int way : {0, 1, 2}) {
            Array out(expected.size());
            reduce_table(target).weighted[static_cast<std::size_t>(dtype())]({.inputs = inputs.data(),
                                                                              .inputs_count = n,
                                                                              .out = out.data(),
                                                                              .count = count,
                                                                              .divisor = 1,
                                                                              .stream = way == 2,
                                                                              .ahead = way != 0,
                                                                              .weights = weights.data(),
                                                                              .quotient = quotient,
                                                                              .largest = largest_of(dtype())});
            ASSERT_EQ(test::difference(dtype(), expected.data(), out.data(), count), "")
                << to_string(target) << ", " << n << " inputs of " << count << ", quotient " << quotient << ", way "
                << way;
          }
        }
      }
    }
  }
}

TEST_P(AverageInSteps, RescalesByAFractionAndStaysFinite) {
  Array value = encoded(dtype(), largest_of(dtype()), 5);
  rescale(dtype(), value.data(), value.data(), 5, 3, 3);
  EXPECT_EQ(decoded(dtype(), value.data()), largest_of(dtype()));
  const Array six = encoded(dtype(), 6);
  Array out(size_of(dtype()));
  rescale(dtype(), six.data(), out.data(), 1, 2, 3);
  EXPECT_EQ(decoded(dtype(), out.data()), 4);
}

INSTANTIATE_TEST_SUITE_P(Floats, AverageInSteps, testing::ValuesIn(kFloats),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(ReduceStep, HasTheSameBitsInOneCallAndInSeveral) {
  std::mt19937_64 random(6);
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (int trial = 0; trial < 200; ++trial) {
      const auto n = std::uniform_int_distribution<std::size_t>(2, 20)(random);
      const std::size_t first = std::uniform_int_distribution<std::size_t>(1, n - 1)(random);
      std::vector<Array> values;
      std::vector<const void*> inputs;
      std::vector<std::uint32_t> ranks;
      std::uint32_t all = 0;
      for (std::size_t k = 0; k < n; ++k) {
        values.push_back(test::values(dtype, 67, random));
        ranks.push_back(1U << (random() % 4));
        all += ranks.back();
      }
      for (const Array& value : values) inputs.push_back(value.data());
      const std::uint32_t divisor = trial % 2 == 0 ? all : 1;
      Array at_once(values[0].size()), begun(values[0].size());
      reduce_step(dtype, ReduceOp::avg, inputs, at_once.data(), 67,
                  {.divisor = divisor, .ranks = ranks, .ranks_in_all = all});
      reduce_step(dtype, ReduceOp::avg, std::span(inputs).first(first), begun.data(), 67,
                  {.ranks = std::span(ranks).first(first), .ranks_in_all = all, .unfinished = true});
      std::vector<const void*> rest{begun.data()};
      rest.insert(rest.end(), inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end());
      std::vector<std::uint32_t> their_ranks{1};
      their_ranks.insert(their_ranks.end(), ranks.begin() + static_cast<std::ptrdiff_t>(first), ranks.end());
      reduce_step(dtype, ReduceOp::avg, rest, begun.data(), 67,
                  {.divisor = divisor, .ranks = their_ranks, .ranks_in_all = all, .begun = true});
      ASSERT_EQ(test::difference(dtype, at_once.data(), begun.data(), 67), "") << n << " inputs, " << first;
    }
  }
}

TEST(ReduceStep, LeavesEverythingElseToReduce) {
  const std::int32_t a[] = {7, -8, INT32_MAX}, b[] = {2, -1, 1};
  const std::vector<const void*> inputs{a, b};
  std::int32_t out[3];
  reduce_step(DType::int32, ReduceOp::avg, inputs, out, 3, {.divisor = 2});
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[1], -4);
  EXPECT_EQ(out[2], INT32_MIN / 2) << "an integer sum wraps before it is divided";
  reduce_step(DType::int32, ReduceOp::max, inputs, out, 3);
  EXPECT_EQ(out[0], 7);
}

}  // namespace
}  // namespace tributary::kernels

// Every target that this machine can run, against the scalar reference: dtype x op x inputs x lengths around the vector
// width x alignments x special values. Bits must be equal everywhere, also for floating-point sums, because the order
// of additions is part of the contract.
#include "tributary/kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/reference/reduce.h"
#include "tests/unit/kernels/values.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

using test::GuardedArray;

struct Case {
  DType dtype;
  ReduceOp op;
};

/// GoogleTest would otherwise print the bytes with their padding, and valgrind complains about padding.
void PrintTo(const Case& c, std::ostream* out) {
  *out << std::string(to_string(c.dtype)) + " " + std::string(to_string(c.op));
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
      if (is_defined(ReduceOp{op}, DType{dtype})) cases.push_back({DType{dtype}, ReduceOp{op}});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.dtype)) + "_" + std::string(to_string(info.param.op));
}

/// Runs every target's kernel on inputs at chosen alignments, and compares with the reference's result.
class Trial {
 public:
  /// The order in which reduce() goes through the arrays, which it chooses by their size.
  enum class Way { cached, ahead, streamed };

  struct Shape {
    std::size_t inputs;
    std::size_t count;
    std::uint32_t divisor = 1;
    std::size_t misalignment = 0;
    std::uint64_t seed = 0;
  };

  Trial(Case the_case, Shape shape)
      : case_(the_case), shape_(shape), bytes_(shape.count * size_of(the_case.dtype)), expected_(bytes_) {
    if (case_.op != ReduceOp::avg) shape_.divisor = 1;
    std::mt19937_64 random(shape.seed + 1000 * shape.inputs + shape.count);
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      contents_.push_back(test::values(case_.dtype, shape.count, random));
      inputs_.emplace_back(bytes_, (shape.misalignment * (k + 1)) % 64);
    }
    restore();
    reference::reduce(case_.dtype, case_.op, pointers(), expected_.data(), shape.count, shape_.divisor);
  }

  /// Returns an empty text if every target gives the reference's bits and touches no byte beside its result.
  std::string run(std::initializer_list<Way> ways = {Way::cached}) {
    for (const Target target : available_targets()) {
      for (const Way way : ways) {
        GuardedArray out(bytes_, shape_.misalignment);
        if (const std::string found = run_on(target, out, way); !found.empty()) return found;
      }
    }
    return {};
  }

  /// Does the same with the result written over one of the inputs.
  std::string run_in_place(std::size_t input) {
    for (const Target target : available_targets()) {
      for (const Way way : {Way::cached, Way::ahead}) {
        if (const std::string found = run_on(target, inputs_[input], way); !found.empty()) return found;
        restore();
      }
    }
    return {};
  }

 private:
  std::string run_on(Target target, GuardedArray& out, Way way) {
    const std::vector<const void*> inputs = pointers();
    const ReduceTable& table = reduce_table(target);
    table.functions[static_cast<std::size_t>(case_.dtype)][static_cast<std::size_t>(case_.op)](
        {.inputs = inputs.data(),
         .inputs_count = inputs.size(),
         .out = out.data(),
         .count = shape_.count,
         .divisor = shape_.divisor,
         .stream = way == Way::streamed,
         .ahead = way != Way::cached});
    std::string found = test::difference(case_.dtype, expected_.data(), out.data(), shape_.count);
    if (!out.guards_intact()) found += "bytes beside the result were written";
    if (found.empty()) return found;
    const char* const how = way == Way::streamed ? " streamed: " : way == Way::ahead ? " reading ahead: " : ": ";
    return std::string(to_string(target)) + how + found + ", " + std::to_string(inputs.size()) + " inputs, divisor " +
           std::to_string(shape_.divisor) + ", misalignment " + std::to_string(shape_.misalignment);
  }

  void restore() {
    for (std::size_t k = 0; k < inputs_.size(); ++k) inputs_[k].assign(contents_[k]);
  }

  [[nodiscard]] std::vector<const void*> pointers() const {
    std::vector<const void*> pointers;
    for (const GuardedArray& input : inputs_) pointers.push_back(input.data());
    return pointers;
  }

  Case case_;
  Shape shape_;
  std::size_t bytes_;
  std::vector<std::vector<std::byte>> contents_;
  std::vector<GuardedArray> inputs_;
  std::vector<std::byte> expected_;
};

class ReduceOnEveryTarget : public testing::TestWithParam<Case> {
 protected:
  // A group is at most four vectors of 64 bytes, but SVE's vectors can be longer; the last lengths test such vectors.
  [[nodiscard]] static std::vector<std::size_t> lengths() {
    const std::size_t vector = 64 / size_of(GetParam().dtype);
    return {0,
            1,
            2,
            3,
            vector - 1,
            vector,
            vector + 1,
            2 * vector - 1,
            2 * vector,
            2 * vector + 1,
            4 * vector - 1,
            4 * vector,
            4 * vector + 3,
            9 * vector + 5,
            17 * vector + 1};
  }
};

TEST_P(ReduceOnEveryTarget, GivesTheReferencesBitsAtEveryLength) {
  for (const std::size_t inputs : {1U, 2U, 3U, 4U, 8U}) {
    for (const std::size_t length : lengths()) {
      Trial trial(GetParam(), {.inputs = inputs, .count = length, .divisor = 3});
      ASSERT_EQ(trial.run({Trial::Way::cached, Trial::Way::ahead, Trial::Way::streamed}), "");
    }
  }
}

TEST_P(ReduceOnEveryTarget, GivesTheReferencesBitsAtEveryAlignment) {
  const std::size_t length = 700 / size_of(GetParam().dtype);
  for (std::size_t misalignment = 1; misalignment < 64; ++misalignment) {
    Trial trial(GetParam(), {.inputs = 2, .count = length, .divisor = 2, .misalignment = misalignment});
    ASSERT_EQ(trial.run({Trial::Way::cached, Trial::Way::streamed}), "");
  }
}

TEST_P(ReduceOnEveryTarget, ReducesInPlaceOnAnyOneInput) {
  Trial trial(GetParam(),
              {.inputs = 3, .count = 1000 / size_of(GetParam().dtype) + 1, .divisor = 5, .misalignment = 8});
  for (std::size_t input = 0; input < 3; ++input)
    EXPECT_EQ(trial.run_in_place(input), "") << "in place on input " << input;
}

TEST_P(ReduceOnEveryTarget, TakesAsManyInputsAsTheContractAllows) {
  for (const std::size_t inputs : {5U, 16U, 17U, 31U, 64U}) {
    Trial trial(GetParam(), {.inputs = inputs, .count = 333, .divisor = static_cast<std::uint32_t>(inputs)});
    EXPECT_EQ(trial.run(), "");
  }
}

TEST_P(ReduceOnEveryTarget, DividesByAnyNumberOfRanks) {
  if (GetParam().op != ReduceOp::avg) GTEST_SKIP() << "only avg divides";
  for (const std::uint32_t divisor :
       {1U,     2U,      3U,          5U,          7U,          8U,          10U,        127U,
        128U,   129U,    255U,        256U,        257U,        1000U,       65535U,     65536U,
        65537U, 100000U, 0x7FFFFFFFU, 0x80000000U, 0x80000001U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    Trial trial(GetParam(), {.inputs = 2, .count = 1000, .divisor = divisor, .seed = divisor});
    EXPECT_EQ(trial.run(), "");
  }
}

// Covers all pairs of an 8-bit dtype, and for a 16-bit float every value with a few others, so that no rounding,
// overflow or special value is left out.
TEST_P(ReduceOnEveryTarget, GivesTheReferencesBitsForEveryPairOfSmallValues) {
  const auto [dtype, op] = GetParam();
  const std::size_t size = size_of(dtype);
  if (size > 2) GTEST_SKIP() << "too many values";
  const std::size_t codes = std::size_t{1} << (8 * size);
  std::vector<std::byte> first(codes * size), second(codes * size), expected(codes * size), actual(codes * size);
  const void* inputs[] = {first.data(), second.data()};
  for (std::size_t code = 0; code < codes; ++code) std::memcpy(first.data() + code * size, &code, size);
  for (std::size_t other = 0; other < codes; other += size == 1 ? 1 : 6143) {
    for (std::size_t code = 0; code < codes; ++code) std::memcpy(second.data() + code * size, &other, size);
    const std::uint32_t divisor = op == ReduceOp::avg ? static_cast<std::uint32_t>(other % 300 + 1) : 1;
    reference::reduce(dtype, op, inputs, expected.data(), codes, divisor);
    for (const Target target : available_targets()) {
      if (target == Target::scalar) continue;  // this target is the reference itself
      reduce_table(target).functions[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)](
          {.inputs = inputs,
           .inputs_count = 2,
           .out = actual.data(),
           .count = codes,
           .divisor = divisor,
           .stream = false});
      ASSERT_EQ(test::difference(dtype, expected.data(), actual.data(), codes), "")
          << to_string(target) << ", second operand " << other;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ReduceOnEveryTarget, testing::ValuesIn(all_cases()), name_of);

TEST(Reduce, RunsOnTheFastestTarget) {
  EXPECT_FALSE(available_targets().empty());
  EXPECT_NE(std::ranges::find(available_targets(), active_target()), available_targets().end());
}

TEST(Reduce, HasBitsAndTruthValuesOfIntegersOnly) {
  for (const Target target : available_targets()) {
    for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
        EXPECT_EQ(reduce_table(target).functions[dtype][op] != nullptr, is_defined(ReduceOp{op}, DType{dtype}))
            << to_string(target) << " " << to_string(DType{dtype}) << " " << to_string(ReduceOp{op});
      }
    }
  }
}

TEST(ReduceDeathTest, NoFloatHasBits) {
  const float value = 1;
  const void* inputs[] = {&value, &value};
  float out = 0;
  EXPECT_DEATH(reduce(DType::float32, ReduceOp::band, inputs, &out, 1), "type 8 has no operator 5");
}

TEST(Reduce, IgnoresTheDivisorOfEveryOpButAvg) {
  const float values[] = {6.0F, 8.0F};
  const void* inputs[] = {&values[0], &values[1]};
  float out = 0;
  reduce(DType::float32, ReduceOp::sum, inputs, &out, 1, 2);
  EXPECT_EQ(out, 14.0F);
  reduce(DType::float32, ReduceOp::avg, inputs, &out, 1, 2);
  EXPECT_EQ(out, 7.0F);
}

// Aggregators below the root pass 1 as the divisor.
TEST(Reduce, AveragesByOneAsItSums) {
  std::mt19937_64 random(5);
  for (std::uint8_t index = 0; index < kDTypeCount; ++index) {
    const DType dtype{index};
    constexpr std::size_t kCount = 1000;
    const std::vector<std::byte> first = test::values(dtype, kCount, random);
    const std::vector<std::byte> second = test::values(dtype, kCount, random);
    const void* inputs[] = {first.data(), second.data()};
    std::vector<std::byte> expected(first.size()), averaged(first.size());
    reference::reduce(dtype, ReduceOp::avg, inputs, expected.data(), kCount, 1);
    reduce(dtype, ReduceOp::avg, inputs, averaged.data(), kCount, 1);
    EXPECT_EQ(test::difference(dtype, expected.data(), averaged.data(), kCount), "");
  }
}

// A result larger than the last cache is written past the caches; in place it must not be.
TEST(Reduce, GivesTheSameBitsForArraysLargerThanTheCaches) {
  constexpr std::size_t kCount = (std::size_t{24} << 20) / sizeof(float) + 13;
  std::vector<float> first(kCount), second(kCount), out(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    first[i] = static_cast<float>(i % 1000);
    second[i] = static_cast<float>(i % 77) * 0.5F;
  }
  const auto wrong = [&](const std::vector<float>& result) {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (result[i] != static_cast<float>(i % 1000) + static_cast<float>(i % 77) * 0.5F) return i;
    }
    return kCount;
  };
  const void* inputs[] = {first.data(), second.data()};
  reduce(DType::float32, ReduceOp::sum, inputs, out.data(), kCount);
  EXPECT_EQ(wrong(out), kCount);
  reduce(DType::float32, ReduceOp::sum, inputs, second.data(), kCount);
  EXPECT_EQ(wrong(second), kCount);
}

}  // namespace
}  // namespace tributary::kernels

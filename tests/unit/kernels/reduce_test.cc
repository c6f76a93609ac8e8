// Every target that this machine can run, against the scalar reference: dtype x op x inputs x lengths about the vector
// width x alignments x special values. Bits must be equal everywhere, also for floating-point sums, because the order
// of additions is part of the contract.
#include "tributary/kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/kernel_table.h"
#include "reference/reduce.h"
#include "values.h"

namespace tributary::kernels {
namespace {

using test::GuardedArray;

struct Case {
  Target target;
  DType dtype;
  ReduceOp op;

  [[nodiscard]] ReduceFunction function() const {
    return reduce_table(target).functions[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Target target : available_targets()) {
    for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (std::uint8_t op = 0; op < kReduceOpCount; ++op) cases.push_back({target, DType{dtype}, ReduceOp{op}});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.target)) + "_" + std::string(to_string(info.param.dtype)) + "_" +
         std::string(to_string(info.param.op));
}

/// Inputs at chosen alignments, the reference's result, and a run of one kernel over them.
class Trial {
 public:
  Trial(Case the_case, std::size_t inputs_count, std::size_t count, std::uint32_t divisor, std::size_t misalignment,
        std::uint64_t seed)
      : case_(the_case), count_(count), divisor_(the_case.op == ReduceOp::avg ? divisor : 1), expected_(bytes()) {
    std::mt19937_64 random(seed);
    for (std::size_t k = 0; k < inputs_count; ++k) {
      inputs_.emplace_back(bytes(), (misalignment * (k + 1)) % 64);
      inputs_.back().assign(test::values(case_.dtype, count, random));
    }
    reference::reduce(case_.dtype, case_.op, pointers(), expected_.data(), count, divisor_);
  }

  [[nodiscard]] std::size_t bytes() const { return count_ * size_of(case_.dtype); }
  [[nodiscard]] GuardedArray& input(std::size_t k) { return inputs_[k]; }

  /// Empty when `out` holds the reference's bits afterwards and nothing beside it was touched.
  std::string run(GuardedArray& out, bool stream) {
    const std::vector<const void*> inputs = pointers();
    case_.function()({.inputs = inputs.data(),
                      .inputs_count = inputs.size(),
                      .out = out.data(),
                      .count = count_,
                      .divisor = divisor_,
                      .stream = stream});
    if (!out.guards_intact()) return "bytes beside the result were written";
    const std::string found = test::difference(case_.dtype, expected_.data(), out.data(), count_);
    return found.empty()
               ? found
               : found + ", " + std::to_string(inputs.size()) + " inputs, divisor " + std::to_string(divisor_);
  }

 private:
  [[nodiscard]] std::vector<const void*> pointers() const {
    std::vector<const void*> pointers;
    for (const GuardedArray& input : inputs_) pointers.push_back(input.data());
    return pointers;
  }

  Case case_;
  std::size_t count_;
  std::uint32_t divisor_;
  std::vector<GuardedArray> inputs_;
  std::vector<std::byte> expected_;
};

class ReduceOnTarget : public testing::TestWithParam<Case> {
 protected:
  // A group is at most four vectors of 64 bytes; SVE under an emulator can have vectors of 256.
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

TEST_P(ReduceOnTarget, GivesTheReferencesBitsAtEveryLength) {
  for (const std::size_t inputs : {1U, 2U, 3U, 8U}) {
    for (const std::size_t length : lengths()) {
      Trial trial(GetParam(), inputs, length, 3, 0, 1000 * inputs + length);
      GuardedArray out(trial.bytes(), 0);
      ASSERT_EQ(trial.run(out, false), "");
      ASSERT_EQ(trial.run(out, true), "") << "streamed";
    }
  }
}

TEST_P(ReduceOnTarget, GivesTheReferencesBitsAtEveryAlignment) {
  const std::size_t length = 700 / size_of(GetParam().dtype);
  for (std::size_t misalignment = 1; misalignment < 64; ++misalignment) {
    Trial trial(GetParam(), 2, length, 2, misalignment, misalignment);
    GuardedArray out(trial.bytes(), misalignment);
    ASSERT_EQ(trial.run(out, false), "") << "misaligned by " << misalignment;
    ASSERT_EQ(trial.run(out, true), "") << "streamed, misaligned by " << misalignment;
  }
}

TEST_P(ReduceOnTarget, ReducesInPlaceOnAnyOneInput) {
  const std::size_t length = 1000 / size_of(GetParam().dtype) + 1;
  for (std::size_t place = 0; place < 3; ++place) {
    Trial trial(GetParam(), 3, length, 5, 8, place);
    EXPECT_EQ(trial.run(trial.input(place), false), "") << "in place on input " << place;
  }
}

TEST_P(ReduceOnTarget, TakesAsManyInputsAsTheContractAllows) {
  for (const std::size_t inputs : {5U, 16U, 17U, 31U, 64U}) {
    Trial trial(GetParam(), inputs, 333, static_cast<std::uint32_t>(inputs), 0, inputs);
    GuardedArray out(trial.bytes(), 0);
    EXPECT_EQ(trial.run(out, false), "");
  }
}

TEST_P(ReduceOnTarget, DividesByAnyNumberOfRanks) {
  if (GetParam().op != ReduceOp::avg) GTEST_SKIP() << "only avg divides";
  for (const std::uint32_t divisor :
       {1U,     2U,      3U,          5U,          7U,          8U,          10U,        127U,
        128U,   129U,    255U,        256U,        257U,        1000U,       65535U,     65536U,
        65537U, 100000U, 0x7FFFFFFFU, 0x80000000U, 0x80000001U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    Trial trial(GetParam(), 2, 2000, divisor, 0, divisor);
    GuardedArray out(trial.bytes(), 0);
    EXPECT_EQ(trial.run(out, false), "");
  }
}

// All pairs of an 8-bit dtype, and of a 16-bit float every value against a few hundred: no rounding, overflow or
// special is left out.
TEST_P(ReduceOnTarget, GivesTheReferencesBitsForEveryPairOfSmallValues) {
  const std::size_t size = size_of(GetParam().dtype);
  if (size > 2) GTEST_SKIP() << "too many values";
  const std::size_t codes = std::size_t{1} << (8 * size);
  std::vector<std::byte> first(codes * size), second(codes * size), expected(codes * size), actual(codes * size);
  const void* inputs[] = {first.data(), second.data()};
  for (std::size_t code = 0; code < codes; ++code) std::memcpy(first.data() + code * size, &code, size);
  for (std::size_t other = 0; other < codes; other += size == 1 ? 1 : 1021) {
    for (std::size_t code = 0; code < codes; ++code) std::memcpy(second.data() + code * size, &other, size);
    const std::uint32_t divisor = GetParam().op == ReduceOp::avg ? static_cast<std::uint32_t>(other % 300 + 1) : 1;
    reference::reduce(GetParam().dtype, GetParam().op, inputs, expected.data(), codes, divisor);
    GetParam().function()({.inputs = inputs,
                           .inputs_count = 2,
                           .out = actual.data(),
                           .count = codes,
                           .divisor = divisor,
                           .stream = false});
    ASSERT_EQ(test::difference(GetParam().dtype, expected.data(), actual.data(), codes), "")
        << "second operand " << other;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ReduceOnTarget, testing::ValuesIn(all_cases()), name_of);

TEST(Reduce, RunsOnTheFastestTarget) {
  EXPECT_FALSE(available_targets().empty());
  EXPECT_NE(std::ranges::find(available_targets(), active_target()), available_targets().end());
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

// Past the size of the last cache the result is streamed, and in place it must not be.
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

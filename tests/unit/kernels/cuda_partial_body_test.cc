// The bodies of the CUDA kernels of partial sums, compiled for the host and run thread after thread: their forms have
// the bytes of add_partial_sums(), their values the bits of exact_sum().
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device/partial_body.cuh"
#include "kernels/reference/exact_sum.h"
#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/cuda_partial_sums.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/frame.h"

namespace tributary::kernels::cuda {
namespace {

using Bytes = std::vector<std::byte>;

using Reference = reference::ExactSum;
static_assert(std::uint8_t{kNaN} == std::uint8_t{Reference::kNaN} &&
              std::uint8_t{kPlusInfinity} == std::uint8_t{Reference::kInfinity} &&
              std::uint8_t{kMinusInfinity} == std::uint8_t{Reference::kMinusInfinity} &&
              std::uint8_t{kMinusZero} == std::uint8_t{Reference::kMinusZero} &&
              std::uint8_t{kAllMarks} == std::uint8_t{Reference::kAllMarks} && kFormRanksMax == kRanksMax);

/// A thread block whose threads run one after the other.
struct SerialThreads {
  template <class T>
  struct Local {
    T& operator[](std::uint32_t thread) { return values[thread]; }
    T values[kThreadsPerBlock];
  };
  template <class Function>
  void each(Function function) {
    for (std::uint32_t thread = 0; thread < kThreadsPerBlock; ++thread) function(thread);
  }
  template <class Function>
  int least(Function function) {
    int found = function(0);
    for (std::uint32_t thread = 1; thread < kThreadsPerBlock; ++thread) found = std::min(found, function(thread));
    return found;
  }
  template <class Function>
  int most(Function function) {
    int found = function(0);
    for (std::uint32_t thread = 1; thread < kThreadsPerBlock; ++thread) found = std::max(found, function(thread));
    return found;
  }
  std::uint64_t exclusive_sums(Local<std::uint64_t>& values) {
    std::uint64_t all = 0;
    for (std::uint64_t& value : values.values) all += std::exchange(value, all);
    return all;
  }
};

/// One call on the host, with the workspace of a call on a device.
template <DType kDType>
class Call {
 public:
  Call(const std::vector<PartialInput>& inputs, std::size_t count, std::byte* out)
      : workspace_(partial_workspace_bytes(inputs.size(), count) / sizeof(std::uint64_t) + 1, 0xABABABABABABABABU) {
    const std::uint64_t blocks = (count + kFormBlockElements - 1) / kFormBlockElements;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      arguments_.inputs[k] = inputs[k].bytes.data();
      arguments_.bytes[k] = inputs[k].bytes.size();
      if (inputs[k].is_form) arguments_.forms |= std::uint64_t{1} << k;
    }
    arguments_.result = reinterpret_cast<PartialResult*>(workspace_.data());
    arguments_.places = workspace_.data() + sizeof(PartialResult) / sizeof(std::uint64_t);
    arguments_.offsets = arguments_.places + blocks;
    arguments_.out = out;
    arguments_.count = count;
    arguments_.inputs_count = static_cast<std::uint32_t>(inputs.size());
    arguments_.inputs_log2 = static_cast<std::uint32_t>(std::bit_width(inputs.size() - 1));
    arguments_.least = form_range_of(kDType).least;
    arguments_.end = form_range_of(kDType).end();
  }

  PartialAnswer add() {
    arguments_.divisor = 1;
    check();
    run<PartialStep::measure>();
    place_blocks(arguments_, threads_);
    run<PartialStep::write>();
    return answer();
  }
  PartialAnswer round(std::uint32_t divisor) {
    arguments_.divisor = divisor;
    check();
    run<PartialStep::round>();
    return answer();
  }

 private:
  void check() {
    for (std::uint32_t input = 0; input < arguments_.inputs_count; ++input) check_input(arguments_, input, threads_);
  }
  /// Two thread blocks share the work.
  template <PartialStep kStep>
  void run() {
    for (const std::uint64_t first : {1U, 0U}) partial_blocks<kDType, kStep>(arguments_, first, 2, threads_);
  }
  [[nodiscard]] PartialAnswer answer() const { return {arguments_.result->bytes, arguments_.result->fault}; }

  std::vector<std::uint64_t> workspace_;
  PartialArguments arguments_{};
  SerialThreads threads_;
};

template <class Function>
auto with_type(DType dtype, Function function) {
  switch (dtype) {
    case DType::float16:
      return function.template operator()<DType::float16>();
    case DType::bfloat16:
      return function.template operator()<DType::bfloat16>();
    case DType::float32:
      return function.template operator()<DType::float32>();
    case DType::float64:
      return function.template operator()<DType::float64>();
    case DType::float8_e4m3:
      return function.template operator()<DType::float8_e4m3>();
    default:
      return function.template operator()<DType::float8_e5m2>();
  }
}

TEST(CudaWholeNumber, AQuotientIsRoundedOnce) {
  using Float32 = LayoutOf<DType::float32>;
  // 3 * 2^60 + 3 * 2^36, a third of which lies in the middle of two float32, and one more.
  auto number = zero_number<1>();
  number.add(3, false, 60);
  number.add(3, false, 36);
  EXPECT_EQ(quotient<Float32>(number, -60, 3), 0x3F800000U) << "the middle goes to the even neighbour";
  number.add(1, false, 0);
  EXPECT_EQ(quotient<Float32>(number, -60, 3), 0x3F800001U);
  number.negate();
  EXPECT_EQ(quotient<Float32>(number, -60, 3), 0xBF800001U);
}

class CudaPartialBody : public testing::TestWithParam<DType> {
 protected:
  static Bytes host_form(const std::vector<PartialInput>& inputs, std::size_t count) {
    Bytes form(form_bytes_max(GetParam(), count));
    form.resize(add_partial_sums(GetParam(), inputs, count, form));
    return form;
  }
  static PartialAnswer add(const std::vector<PartialInput>& inputs, std::size_t count, Bytes& form) {
    test::GuardedArray out(form_bytes_max(GetParam(), count), 3);
    const PartialAnswer answer =
        with_type(GetParam(), [&]<DType kDType>() { return Call<kDType>(inputs, count, out.data()).add(); });
    EXPECT_TRUE(out.guards_intact());
    form.assign(out.data(), out.data() + answer.bytes);
    return answer;
  }
  static Bytes rounded(const std::vector<PartialInput>& inputs, std::size_t count, std::uint32_t divisor) {
    test::GuardedArray out(count * size_of(GetParam()), 8);
    const PartialAnswer answer =
        with_type(GetParam(), [&]<DType kDType>() { return Call<kDType>(inputs, count, out.data()).round(divisor); });
    EXPECT_EQ(answer.fault, 0U);
    EXPECT_TRUE(out.guards_intact());
    return {out.data(), out.data() + count * size_of(GetParam())};
  }
  static Bytes host_rounded(const std::vector<PartialInput>& inputs, std::size_t count, std::uint32_t divisor) {
    Bytes out(count * size_of(GetParam()));
    round_partial_sums(GetParam(), inputs, out.data(), count, divisor);
    return out;
  }

  static void compare_with_host(const std::vector<PartialInput>& inputs, std::size_t count, std::uint32_t divisor) {
    Bytes form;
    EXPECT_EQ(add(inputs, count, form).fault, 0U);
    EXPECT_EQ(form, host_form(inputs, count));
    ASSERT_EQ(rounded(inputs, count, divisor), host_rounded(inputs, count, divisor)) << "by " << divisor;
  }
  /// Sums values, then forms of values, then both together.
  static void compare(test::Family family, std::size_t count, std::size_t inputs) {
    SCOPED_TRACE(std::string(test::to_string(family)) + ", " + std::to_string(inputs) + " of " + std::to_string(count));
    const auto arrays = test::exact_inputs(GetParam(), family, inputs, count, inputs);
    std::vector<PartialInput> values;
    for (const Bytes& array : arrays) values.push_back({array, false});
    const Bytes all = host_form(values, count);
    Bytes form;
    EXPECT_EQ(add(values, count, form).fault, 0U);
    ASSERT_EQ(form, all);
    const std::size_t half = (inputs + 1) / 2;
    const std::vector<PartialInput> first(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half));
    const Bytes lower = host_form(first, count);
    std::vector<PartialInput> mixed{{lower, true}};
    for (std::size_t k = half; k < inputs; ++k) mixed.push_back(values[k]);
    EXPECT_EQ(add(mixed, count, form).fault, 0U);
    ASSERT_EQ(form, all);
    for (const std::uint32_t divisor : {1U, 3U, 8U, static_cast<std::uint32_t>(inputs), (1U << 26U) - 1}) {
      ASSERT_EQ(rounded(values, count, divisor), host_rounded(values, count, divisor)) << "by " << divisor;
      ASSERT_EQ(rounded(mixed, count, divisor), host_rounded(mixed, count, divisor)) << "by " << divisor;
    }
  }
};

TEST_P(CudaPartialBody, GivesTheHostsBytesAndBitsForEveryFamily) {
  for (const test::Family family : test::kFamilies) {
    for (const std::size_t inputs : {1U, 2U, 3U, 8U}) ASSERT_NO_FATAL_FAILURE(compare(family, 700, inputs));
    ASSERT_NO_FATAL_FAILURE(compare(family, 257, 64));
  }
}

TEST_P(CudaPartialBody, GivesTheHostsBytesAtEveryLength) {
  for (const std::size_t count : {0U, 1U, 2U, 255U, 256U, 257U, 511U, 512U, 1000U, 70'000U})
    ASSERT_NO_FATAL_FAILURE(compare(test::Family::any, count, 3));
}

TEST_P(CudaPartialBody, CountsRanks) {
  const auto arrays = test::exact_inputs(GetParam(), test::Family::ordinary, 3, 5, 1);
  const Bytes two = host_form({{arrays[0], false}, {arrays[1], false}}, 5);
  Bytes form;
  add({{two, true}, {arrays[2], false}}, 5, form);
  EXPECT_EQ(kernels::ranks_of(GetParam(), {form, true}), 3U);
}

TEST_P(CudaPartialBody, RefusesWhatIsNoForm) {
  const auto arrays = test::exact_inputs(GetParam(), test::Family::any, 2, 300, 1);
  const Bytes good = host_form({{arrays[0], false}, {arrays[1], false}}, 300);
  const auto fault_of = [&](const Bytes& form) {
    Bytes out;
    const PartialAnswer answer = add({{arrays[0], false}, {form, true}}, 300, out);
    EXPECT_EQ(answer.bytes == 0, answer.fault != 0);
    return answer.fault;
  };
  EXPECT_EQ(fault_of(good), 0U);
  std::mt19937_64 random(1);
  int refused = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    Bytes bad = good;
    if (turn % 3 == 0) {
      bad.resize(random() % bad.size());
    } else {
      bad[random() % (turn % 3 == 1 ? 24 : bad.size())] = static_cast<std::byte>(random());
    }
    const bool is_good = partial_sum_elements(GetParam(), bad) == 300;
    ASSERT_EQ(fault_of(bad), is_good ? 0U : 2U) << "turn " << turn;
    refused += is_good ? 0 : 1;
    if (!is_good) continue;
    const std::vector<PartialInput> alone{{bad, true}}, both{{arrays[0], false}, {bad, true}};
    ASSERT_NO_FATAL_FAILURE(compare_with_host(alone, 300, 1)) << "turn " << turn;
    ASSERT_NO_FATAL_FAILURE(compare_with_host(both, 300, 3)) << "turn " << turn;
  }
  EXPECT_GT(refused, 1000);
}

// 64 liars send the largest number that a form may hold: their sum has no form.
TEST_P(CudaPartialBody, GivesNaNBeyondTheRange) {
  const Bytes bytes = test::form_of_one(form_range_of(GetParam()).end() - 8, 1, 127);
  compare_with_host({kPartialInputsMax, {bytes, true}}, 1, 1);
}

// Two liars send a number above all values, and one so far below it that their sum takes 65 bits.
TEST_P(CudaPartialBody, GivesInfinityAboveAllValues) {
  const FormRange range = form_range_of(GetParam());
  const Bytes small = test::form_of_one(std::max(range.least, range.end() - 62), 1, 1);
  const Bytes large = test::form_of_one(range.end() - 8, 1, 127);
  const Bytes zero(size_of(GetParam()));
  for (const std::uint32_t divisor : {1U, 3U})
    compare_with_host({{small, true}, {large, true}, {zero, false}}, 1, divisor);
}

// A liar marks a number as -0, in forms of every length of sums.
TEST_P(CudaPartialBody, CountsANumberMarkedMinusZero) {
  for (unsigned width = 1; width <= 40 && 8 * static_cast<int>(width) <= form_range_of(GetParam()).end(); ++width) {
    SCOPED_TRACE(width);
    const Bytes one = test::form_of_one(0, width, 1, kMinusZero), minus = test::form_of_one(0, width, -1, kMinusZero);
    compare_with_host({{one, true}}, 1, 1);
    compare_with_host({{one, true}, {minus, true}}, 1, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaPartialBody, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::kernels::cuda

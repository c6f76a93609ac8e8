// The bodies of the CUDA kernels, compiled for the host and run one GPU lane at a time, against the scalar reference:
// their arithmetic and their indexing, tested without a GPU. The tests on a device cover the rounding of the device's
// own instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device/convert_body.cuh"
#include "kernels/cuda/device/copy_body.cuh"
#include "kernels/cuda/device/quantize_body.cuh"
#include "kernels/cuda/device/reduce_body.cuh"
#include "kernels/cuda/split.h"
#include "kernels/reference/convert.h"
#include "kernels/reference/reduce.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/cuda.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels::cuda {
namespace {

using test::GuardedArray;

DeviceAddress address_of(const void* pointer) {
  return reinterpret_cast<DeviceAddress>(pointer);
}

/// Runs a grid, one GPU lane after another.
template <class Body>
void run_grid(std::uint64_t lanes, Body body) {
  for (std::uint64_t lane = 0; lane < lanes; ++lane) body(Lane{lane, lanes});
}

// ---- reduce

using ReduceBody = void (*)(const ReduceArguments&, std::uint64_t lanes);

template <DType kDType, ReduceOp kOp>
void run_reduce(const ReduceArguments& arguments, std::uint64_t lanes) {
  run_grid(lanes, [&](Lane lane) { reduce_body<kDType, kOp>(arguments, lane); });
}

template <std::size_t... kIndex>
ReduceBody body_of(std::size_t index, std::index_sequence<kIndex...>) {
  static constexpr ReduceBody kBodies[] = {
      run_reduce<static_cast<DType>(kIndex / kReduceOpCount), static_cast<ReduceOp>(kIndex % kReduceOpCount)>...};
  return kBodies[index];
}

struct Case {
  DType dtype;
  ReduceOp op;
  [[nodiscard]] ReduceBody body() const {
    return body_of(static_cast<std::size_t>(dtype) * kReduceOpCount + static_cast<std::size_t>(op),
                   std::make_index_sequence<std::size_t{kDTypeCount} * kReduceOpCount>{});
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
      if (is_defined(ReduceOp{op}, DType{dtype})) cases.push_back({DType{dtype}, ReduceOp{op}});
    }
  }
  return cases;
}

struct Shape {
  std::size_t inputs;
  std::size_t count;
  std::uint32_t divisor = 1;
  std::size_t misalignment = 0;  // misalignment of every array, in elements
  std::size_t odd_one = 0;       // further misalignment of the first input, in elements
  std::uint64_t lanes = 7;
};

std::string reduced(Case the_case, Shape shape) {
  const std::size_t size = size_of(the_case.dtype);
  const std::uint32_t divisor = the_case.op == ReduceOp::avg ? shape.divisor : 1;
  std::mt19937_64 random(shape.count + shape.inputs);
  std::vector<GuardedArray> inputs;
  ReduceArguments arguments{};
  std::vector<const void*> pointers;
  std::vector<DeviceAddress> addresses;
  for (std::size_t k = 0; k < shape.inputs; ++k) {
    inputs.emplace_back(shape.count * size, (shape.misalignment + (k == 0 ? shape.odd_one : 0)) * size);
    inputs.back().assign(test::values(the_case.dtype, shape.count, random));
    arguments.inputs[k] = inputs.back().data();
    pointers.push_back(arguments.inputs[k]);
    addresses.push_back(address_of(arguments.inputs[k]));
  }
  std::vector<std::byte> expected(shape.count * size);
  reference::reduce(the_case.dtype, the_case.op, pointers, expected.data(), shape.count, divisor);

  GuardedArray out(shape.count * size, shape.misalignment * size);
  arguments.out = out.data();
  arguments.count = shape.count;
  arguments.split = split_of_reduce(addresses, address_of(out.data()), shape.count, size);
  arguments.reciprocal = reciprocal_for(divisor, size);
  arguments.inputs_count = static_cast<std::uint32_t>(shape.inputs);
  arguments.divisor = divisor;
  the_case.body()(arguments, shape.lanes);
  if (!out.guards_intact()) return "bytes beside the result were written";
  return test::difference(the_case.dtype, expected.data(), out.data(), shape.count);
}

class CudaReduceBody : public testing::TestWithParam<Case> {};

TEST_P(CudaReduceBody, GivesTheReferencesBitsAtEveryLengthAndAlignment) {
  for (std::size_t misalignment = 0; misalignment < 16 / size_of(GetParam().dtype); ++misalignment) {
    for (const std::size_t count : {0U, 1U, 3U, 15U, 16U, 17U, 64U, 257U, 1000U}) {
      ASSERT_EQ(reduced(GetParam(), {.inputs = 3, .count = count, .divisor = 3, .misalignment = misalignment}), "")
          << count << " at " << misalignment;
    }
  }
}

TEST_P(CudaReduceBody, GoesElementByElementWhereAlignmentsDiffer) {
  EXPECT_EQ(reduced(GetParam(), {.inputs = 2, .count = 300, .odd_one = 1}), "");
}

TEST_P(CudaReduceBody, TakesAnyNumberOfInputsAndLanes) {
  for (const std::size_t inputs : {1U, 2U, 5U, 64U}) {
    for (const std::uint64_t lanes : {1U, 32U, 1024U})
      EXPECT_EQ(reduced(GetParam(), {.inputs = inputs, .count = 200, .divisor = 7, .lanes = lanes}), "");
  }
}

TEST_P(CudaReduceBody, DividesByAnyNumberOfRanks) {
  if (GetParam().op != ReduceOp::avg) GTEST_SKIP() << "only avg divides";
  for (const std::uint32_t divisor :
       {1U, 2U, 3U, 10U, 255U, 256U, 257U, 65537U, 0x7FFFFFFFU, 0x80000000U, 0x80000001U, 0xFFFFFFFFU}) {
    EXPECT_EQ(reduced(GetParam(), {.inputs = 2, .count = 1000, .divisor = divisor}), "") << divisor;
  }
}

TEST(CudaByteQuotient, DividesEveryByteByEveryDivisor) {
  std::vector<std::uint32_t> divisors(300);
  std::iota(divisors.begin(), divisors.end(), 1U);
  for (const std::uint32_t divisor : {65535U, 65536U, 65537U, 0x7FFFFFFFU, 0xFFFFFFFFU}) divisors.push_back(divisor);
  for (const std::uint32_t divisor : divisors) {
    const auto multiplier = static_cast<std::uint32_t>(reciprocal_for_bytes(divisor).multiplier);
    for (int value = -128; value < 256; ++value) {
      const auto expected = static_cast<std::uint8_t>(std::int64_t{value} / std::int64_t{divisor});
      const std::uint32_t word = value < 128 ? byte_quotient(static_cast<std::int8_t>(value), multiplier)
                                             : byte_quotient(static_cast<std::uint8_t>(value), multiplier);
      ASSERT_EQ(static_cast<std::uint8_t>(word >> 16), expected) << value << " / " << divisor;
      if (value < 0) continue;
      ASSERT_EQ(static_cast<std::uint8_t>(byte_quotient(static_cast<std::uint8_t>(value), multiplier) >> 16), expected)
          << value << " / " << divisor;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaReduceBody, testing::ValuesIn(all_cases()), [](const auto& test_case) {
  return std::string(to_string(test_case.param.dtype)) + "_" + std::string(to_string(test_case.param.op));
});

// ---- convert

std::vector<float> floats(std::size_t count) {
  std::mt19937_64 random(count);
  const std::vector<std::byte> bytes = test::values(DType::float32, count, random);
  std::vector<float> values(count);
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).data());  // this works without elements, too
  return values;
}

template <DType kDType, bool kSaturate>
std::string narrowed(std::size_t count, std::size_t misalignment) {
  GuardedArray in(count * sizeof(float), misalignment * sizeof(float)),
      out(count * size_of(kDType), misalignment * size_of(kDType));
  std::mt19937_64 random(count);
  in.assign(test::values(DType::float32, count, random));
  std::vector<std::byte> expected(count * size_of(kDType));
  reference::convert(DType::float32, kDType, in.data(), expected.data(), count,
                     {.overflow = kSaturate ? Overflow::saturate : Overflow::to_infinity});
  const ConvertArguments arguments{
      in.data(), out.data(), count,
      split_of_convert(address_of(in.data()), address_of(out.data()), count, size_of(kDType))};
  run_grid(5, [&](Lane lane) { convert_body<NarrowBody<kDType, kSaturate>>(arguments, lane); });
  if (!out.guards_intact()) return "bytes beside the result were written";
  return test::difference(kDType, expected.data(), out.data(), count);
}

template <DType kDType>
std::string widened(std::size_t count, std::size_t misalignment, bool accumulates) {
  GuardedArray in(count * size_of(kDType), misalignment * size_of(kDType)),
      out(count * sizeof(float), misalignment * sizeof(float));
  std::mt19937_64 random(count);
  in.assign(test::plain_values(kDType, count, random));
  std::vector<float> expected = floats(count);
  std::ranges::copy(std::as_bytes(std::span(expected)), out.data());
  if (accumulates)
    reference::convert_accumulate(kDType, in.data(), expected.data(), count);
  else
    reference::convert(kDType, DType::float32, in.data(), expected.data(), count);
  const ConvertArguments arguments{
      in.data(), out.data(), count,
      split_of_convert(address_of(out.data()), address_of(in.data()), count, size_of(kDType))};
  run_grid(5, [&](Lane lane) {
    if (accumulates)
      convert_body<WidenBody<kDType, true>>(arguments, lane);
    else
      convert_body<WidenBody<kDType, false>>(arguments, lane);
  });
  if (!out.guards_intact()) return "bytes beside the result were written";
  return test::difference(DType::float32, reinterpret_cast<const std::byte*>(expected.data()), out.data(), count);
}

template <DType kDType>
void expect_conversions() {
  for (std::size_t misalignment = 0; misalignment < 9; ++misalignment) {
    for (const std::size_t count : {0U, 1U, 4U, 7U, 64U, 1000U}) {
      ASSERT_EQ((narrowed<kDType, false>(count, misalignment)), "") << count << " at " << misalignment;
      ASSERT_EQ((narrowed<kDType, true>(count, misalignment)), "") << count << " at " << misalignment;
      ASSERT_EQ(widened<kDType>(count, misalignment, false), "") << count << " at " << misalignment;
      ASSERT_EQ(widened<kDType>(count, misalignment, true), "") << count << " at " << misalignment;
    }
  }
}

TEST(CudaConvertBody, GivesTheReferencesBitsForFloat16) {
  expect_conversions<DType::float16>();
}
TEST(CudaConvertBody, GivesTheReferencesBitsForBfloat16) {
  expect_conversions<DType::bfloat16>();
}
TEST(CudaConvertBody, GivesTheReferencesBitsForFloat8E4m3) {
  expect_conversions<DType::float8_e4m3>();
}
TEST(CudaConvertBody, GivesTheReferencesBitsForFloat8E5m2) {
  expect_conversions<DType::float8_e5m2>();
}

TEST(CudaConvertBody, DecodesEveryCodeByIntegers) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto word = static_cast<std::uint16_t>(code);
    float expected = 0;
    reference::convert(DType::float16, DType::float32, &word, &expected, 1);
    const float actual = SmallFloat<DType::float16>::widen(word);
    if (expected == expected) {
      ASSERT_EQ(actual, expected) << code;
    } else {
      ASSERT_NE(actual, actual) << code;
    }
  }
}

// ---- quantize

const std::byte* bytes_of(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

/// Quantizes like the kernel, whose GPU lanes compare by shuffles.
template <std::uint32_t kLanes>
void run_quantize_in(const QuantizeArguments& arguments) {
  const std::uint64_t beyond = blocks_of(arguments) + 2;  // lanes beyond the last block do nothing
  for (std::uint64_t index = 0; index < beyond; ++index) {
    const ScaledBlock block = block_at(arguments, index);
    std::uint32_t largest = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      largest = std::max(largest, largest_of(load_part<kLanes>(arguments, block, lane)));
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      quantize_part<kLanes>(arguments, block, lane, load_part<kLanes>(arguments, block, lane), largest);
  }
}

void run_quantize(const QuantizeArguments& arguments) {
  if (arguments.lanes == 8) return run_quantize_in<8>(arguments);
  if (arguments.lanes == 16) return run_quantize_in<16>(arguments);
  run_quantize_in<32>(arguments);
}

/// Quantizes and converts back. The float32 array is `floats_at` elements from a boundary, the int8 array `steps_at`.
void expect_quantized(std::size_t block, std::size_t count, std::size_t floats_at, std::size_t steps_at) {
  std::vector<float> in(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i % 101) * 0.37F - 17.0F;
  if (count > block + 1) in[block + 1] = std::numeric_limits<float>::infinity();
  const std::size_t blocks = scales_count(count, block);
  std::vector<std::int8_t> expected(count);
  std::vector<float> expected_scales(blocks), scales(blocks), expected_sum(count, 1.0F), expected_back(count);
  reference::quantize(in.data(), expected.data(), expected_scales.data(), count, block);
  reference::dequantize(expected.data(), expected_scales.data(), expected_back.data(), count, block);
  reference::dequantize_accumulate(expected.data(), expected_scales.data(), expected_sum.data(), count, block);

  GuardedArray floats(count * sizeof(float), floats_at * sizeof(float)), steps(count, steps_at);
  std::memcpy(floats.data(), in.data(), count * sizeof(float));
  QuantizeArguments arguments = quantize_shape(address_of(floats.data()), address_of(steps.data()), count, block);
  EXPECT_EQ(arguments.aligned, floats_at % 4 == 0 && steps_at % 4 == 0 ? 1U : 0U);
  arguments.in = floats.data();
  arguments.out = steps.data();
  arguments.scales = scales.data();
  run_quantize(arguments);
  EXPECT_TRUE(steps.guards_intact());
  EXPECT_EQ(std::memcmp(steps.data(), expected.data(), count), 0);
  EXPECT_EQ(test::difference(DType::float32, bytes_of(expected_scales), bytes_of(scales), blocks), "");

  arguments.in = steps.data();
  arguments.out = floats.data();
  run_grid(5, [&](Lane lane) { dequantize_body<false>(arguments, lane); });
  EXPECT_EQ(test::difference(DType::float32, bytes_of(expected_back), floats.data(), count), "");
  const std::vector<float> ones(count, 1.0F);
  std::memcpy(floats.data(), ones.data(), count * sizeof(float));
  run_grid(5, [&](Lane lane) { dequantize_body<true>(arguments, lane); });
  EXPECT_EQ(test::difference(DType::float32, bytes_of(expected_sum), floats.data(), count), "");
  EXPECT_TRUE(floats.guards_intact());
}

TEST(CudaQuantizeBody, GivesTheReferencesBits) {
  for (std::size_t block = kScaleBlockMin; block <= kScaleBlockMax; block += kScaleBlockMin) {
    for (const std::size_t count : {std::size_t{1}, block - 1, block, 5 * block + 3, 9 * block + 31}) {
      SCOPED_TRACE(std::to_string(count) + " in blocks of " + std::to_string(block));
      expect_quantized(block, count, 0, 0);
      expect_quantized(block, count, 1, 0);
      expect_quantized(block, count, 0, 3);
    }
  }
}

// ---- copy and pack

TEST(CudaCopyBody, CopiesAtEveryAlignment) {
  std::mt19937_64 random(1);
  for (std::size_t from_offset = 0; from_offset < 17; ++from_offset) {
    for (std::size_t to_offset = 0; to_offset < 17; ++to_offset) {
      for (const std::size_t bytes : {0U, 1U, 15U, 16U, 300U}) {
        GuardedArray from(bytes, from_offset), to(bytes, to_offset);
        from.assign(test::values(DType::uint8, bytes, random));
        run_grid(3, [&](Lane lane) {
          copy_body(reinterpret_cast<char*>(to.data()), reinterpret_cast<const char*>(from.data()), bytes, lane);
        });
        ASSERT_TRUE(to.guards_intact());
        ASSERT_EQ(std::memcmp(to.data(), from.data(), bytes), 0) << from_offset << " to " << to_offset << " " << bytes;
      }
    }
  }
}

TEST(CudaPackBody, PacksAndUnpacksTensorsOfManySizes) {
  std::mt19937_64 random(2);
  std::vector<GuardedArray> tensors, back;
  std::vector<PackedTensor> list;
  for (const std::size_t bytes : {4U, 0U, 16384U, 16385U, 100000U, 1U, 0U, 40000U}) {
    tensors.emplace_back(bytes, bytes % 5);
    tensors.back().assign(test::values(DType::uint8, bytes, random));
    back.emplace_back(bytes, bytes % 7);
    list.push_back({address_of(tensors.back().data()), bytes, 0});
  }
  GuardedArray packed(lay_out(list), 0);

  const auto run = [&](std::vector<GuardedArray>& arrays, PackDirection direction) {
    std::vector<PackEntry> entries;
    std::uint64_t chunks = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      entries.push_back({address_of(arrays[i].data()), list[i].offset, list[i].bytes, chunks});
      chunks += (list[i].bytes + kChunkBytes - 1) / kChunkBytes;
    }
    const PackArguments arguments{entries.data(), packed.data(), chunks, static_cast<std::uint32_t>(entries.size()),
                                  direction};
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk)
      run_grid(8, [&](Lane lane) { pack_chunk(arguments, chunk, lane); });
  };
  run(tensors, PackDirection::pack);
  run(back, PackDirection::unpack);

  EXPECT_TRUE(packed.guards_intact());
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].offset % 16, 0U);
    EXPECT_EQ(std::memcmp(packed.data() + list[i].offset, tensors[i].data(), list[i].bytes), 0) << i;
    EXPECT_EQ(std::memcmp(back[i].data(), tensors[i].data(), list[i].bytes), 0) << i;
    EXPECT_TRUE(back[i].guards_intact()) << i;
  }
}

}  // namespace
}  // namespace tributary::kernels::cuda

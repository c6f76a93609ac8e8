// The CUDA kernels on a real device, against the same scalar reference as the host's. Without a device the program
// prints the reason and ends with the status that means skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/device_array.h"
#include "kernels/reference/convert.h"
#include "kernels/reference/reduce.h"
#include "tests/unit/kernels/tested_device.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/cuda.h"
#include "tributary/kernels/reduce.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels::cuda {

Device* device = nullptr;

namespace {

constexpr DType kSmallFormats[] = {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2};

std::vector<std::byte> downloaded(const DeviceArray& array) {
  std::vector<std::byte> bytes(array.bytes());
  array.download(bytes.data());
  return bytes;
}

struct Case {
  DType dtype;
  ReduceOp op;
};

struct Shape {
  std::size_t inputs;
  std::size_t count;
  std::uint32_t divisor = 1;
  std::size_t misalignment = 0;  // misalignment of every array, in elements
  std::size_t odd_one = 0;       // further misalignment of the first input, in elements
  bool in_place = false;         // the result overwrites the last input
};

std::string reduced(Case the_case, Shape shape) {
  const std::size_t size = size_of(the_case.dtype);
  const std::uint32_t divisor = the_case.op == ReduceOp::avg ? shape.divisor : 1;
  std::mt19937_64 random(shape.count + shape.inputs);
  std::vector<std::vector<std::byte>> contents;
  std::vector<DeviceArray> arrays;
  std::vector<const void*> pointers;
  std::vector<DeviceAddress> addresses;
  for (std::size_t k = 0; k < shape.inputs; ++k) {
    contents.push_back(test::values(the_case.dtype, shape.count, random));
    arrays.emplace_back(*device, shape.count * size, (shape.misalignment + (k == 0 ? shape.odd_one : 0)) * size);
    arrays.back().upload(contents.back().data());
    addresses.push_back(arrays.back().address());
  }
  for (const auto& content : contents) pointers.push_back(content.data());
  std::vector<std::byte> expected(shape.count * size);
  reference::reduce(the_case.dtype, the_case.op, pointers, expected.data(), shape.count, divisor);

  const DeviceArray out(*device, shape.count * size, shape.misalignment * size);
  const DeviceArray& result = shape.in_place ? arrays.back() : out;
  require(device->kernels().reduce(the_case.dtype, the_case.op, addresses, result.address(), shape.count, divisor,
                                   device->stream()));
  device->synchronize();
  return test::difference(the_case.dtype, expected.data(), downloaded(result).data(), shape.count);
}

class CudaDeviceReduce : public testing::TestWithParam<Case> {};

TEST_P(CudaDeviceReduce, GivesTheReferencesBitsAtEveryLength) {
  for (const std::size_t inputs : {1U, 2U, 3U, 8U}) {
    for (const std::size_t count : {1U, 15U, 16U, 17U, 255U, 1000U}) {
      ASSERT_EQ(reduced(GetParam(), {.inputs = inputs, .count = count, .divisor = 3}), "")
          << inputs << " inputs of " << count;
    }
  }
}

TEST_P(CudaDeviceReduce, GivesTheReferencesBitsWhenThreadsGoRoundTheGrid) {
  EXPECT_EQ(reduced(GetParam(), {.inputs = 3, .count = 1500001, .divisor = 3}), "");
}

TEST_P(CudaDeviceReduce, GivesTheReferencesBitsAtEveryAlignment) {
  for (std::size_t misalignment = 1; misalignment < 16 / size_of(GetParam().dtype); ++misalignment) {
    ASSERT_EQ(reduced(GetParam(), {.inputs = 2, .count = 500, .divisor = 2, .misalignment = misalignment}), "")
        << misalignment;
  }
  EXPECT_EQ(reduced(GetParam(), {.inputs = 2, .count = 500, .divisor = 2, .odd_one = 1}), "") << "alignments differ";
}

TEST_P(CudaDeviceReduce, ReducesInPlace) {
  EXPECT_EQ(reduced(GetParam(), {.inputs = 3, .count = 100003, .divisor = 7, .in_place = true}), "");
}

TEST_P(CudaDeviceReduce, TakesAsManyInputsAsTheContractAllows) {
  EXPECT_EQ(reduced(GetParam(), {.inputs = 64, .count = 333, .divisor = 64}), "");
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaDeviceReduce, testing::ValuesIn([] {
                           std::vector<Case> cases;
                           for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
                             for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
                               if (is_defined(ReduceOp{op}, DType{dtype}))
                                 cases.push_back({DType{dtype}, ReduceOp{op}});
                             }
                           }
                           return cases;
                         }()),
                         [](const auto& test_case) {
                           return std::string(to_string(test_case.param.dtype)) + "_" +
                                  std::string(to_string(test_case.param.op));
                         });

// ---- convert

class CudaDeviceConvert : public testing::TestWithParam<DType> {
 protected:
  static std::string narrowed(std::size_t count, Overflow overflow, std::size_t misalignment) {
    std::mt19937_64 random(count);
    const std::vector<std::byte> in = test::values(DType::float32, count, random);
    std::vector<std::byte> expected(count * size_of(GetParam()));
    reference::convert(DType::float32, GetParam(), in.data(), expected.data(), count, {.overflow = overflow});
    DeviceArray from(*device, in.size(), misalignment * sizeof(float));
    const DeviceArray to(*device, expected.size(), misalignment * size_of(GetParam()));
    from.upload(in.data());
    require(device->kernels().convert(DType::float32, GetParam(), from.address(), to.address(), count, overflow,
                                      device->stream()));
    device->synchronize();
    return test::difference(GetParam(), expected.data(), downloaded(to).data(), count);
  }
};

TEST_P(CudaDeviceConvert, NarrowsAsTheReference) {
  for (const Overflow overflow : {Overflow::to_infinity, Overflow::saturate}) {
    for (const std::size_t count : {1U, 7U, 1000U, 2000003U}) EXPECT_EQ(narrowed(count, overflow, 0), "") << count;
    for (std::size_t misalignment = 1; misalignment < 5; ++misalignment)
      EXPECT_EQ(narrowed(1000, overflow, misalignment), "") << misalignment;
  }
}

TEST_P(CudaDeviceConvert, WidensAndAccumulatesEveryCode) {
  const std::size_t size = size_of(GetParam());
  const std::size_t codes = std::size_t{1} << (8 * size);
  std::vector<std::byte> in(codes * size);
  for (std::size_t code = 0; code < codes; ++code) std::memcpy(in.data() + code * size, &code, size);
  std::vector<float> expected(codes, 1.5F), sum(codes, 1.5F);
  reference::convert_accumulate(GetParam(), in.data(), expected.data(), codes);

  DeviceArray from(*device, in.size()), to(*device, codes * sizeof(float));
  from.upload(in.data());
  to.upload(sum.data());
  require(device->kernels().convert_accumulate(GetParam(), from.address(), to.address(), codes, device->stream()));
  EXPECT_EQ(test::difference(DType::float32, reinterpret_cast<const std::byte*>(expected.data()), downloaded(to).data(),
                             codes),
            "");

  require(device->kernels().convert(GetParam(), DType::float32, from.address(), to.address(), codes,
                                    Overflow::to_infinity, device->stream()));
  device->synchronize();
  const std::vector<std::byte> widened = downloaded(to);
  std::vector<float> values(codes);
  reference::convert(GetParam(), DType::float32, in.data(), values.data(), codes);
  for (std::size_t i = 0; i < codes; ++i) {
    const std::uint64_t bits = test::bits_at(DType::float32, widened.data(), i);
    const std::uint64_t want = test::bits_at(DType::float32, reinterpret_cast<const std::byte*>(values.data()), i);
    ASSERT_TRUE(bits == want || (test::is_nan(DType::float32, bits) && test::is_nan(DType::float32, want)))
        << "code " << i;
  }
}

// Stages without GPUDirect: converts on the way to host memory and back.
TEST_P(CudaDeviceConvert, ConvertsIntoMappedHostMemoryAndBack) {
  constexpr std::size_t kCount = 300007;
  std::mt19937_64 random(3);
  const std::vector<std::byte> in = test::plain_values(DType::float32, kCount, random);
  std::vector<std::byte> expected(kCount * size_of(GetParam()));
  std::vector<float> expected_back(kCount);
  reference::convert(DType::float32, GetParam(), in.data(), expected.data(), kCount);
  reference::convert(GetParam(), DType::float32, expected.data(), expected_back.data(), kCount);

  DeviceArray floats(*device, in.size());
  const MappedArray staged(*device, expected.size());
  floats.upload(in.data());
  require(device->kernels().convert(DType::float32, GetParam(), floats.address(), staged.address(), kCount,
                                    Overflow::to_infinity, device->stream(), Share::little));
  device->synchronize();
  EXPECT_EQ(test::difference(GetParam(), expected.data(), staged.data(), kCount), "");
  require(device->kernels().convert(GetParam(), DType::float32, staged.address(), floats.address(), kCount,
                                    Overflow::to_infinity, device->stream(), Share::little));
  device->synchronize();
  EXPECT_EQ(test::difference(DType::float32, reinterpret_cast<const std::byte*>(expected_back.data()),
                             downloaded(floats).data(), kCount),
            "");
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaDeviceConvert, testing::ValuesIn(kSmallFormats),
                         [](const auto& format) { return std::string(to_string(format.param)); });

TEST(CudaDeviceQuantize, GivesTheReferencesBits) {
  for (const std::size_t block : {32U, 64U, 96U, 256U}) {
    std::vector<float> in(1000 * block + 5);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 2654435761U % 100003) * 0.001F - 47.0F;
    in[3 * block] = std::numeric_limits<float>::infinity();
    const std::size_t scales_needed = scales_count(in.size(), block);
    std::vector<std::int8_t> expected(in.size());
    std::vector<float> expected_scales(scales_needed), expected_sum = in, expected_back(in.size());
    reference::quantize(in.data(), expected.data(), expected_scales.data(), in.size(), block);
    reference::dequantize(expected.data(), expected_scales.data(), expected_back.data(), in.size(), block);
    reference::dequantize_accumulate(expected.data(), expected_scales.data(), expected_sum.data(), in.size(), block);

    DeviceArray floats(*device, in.size() * sizeof(float));
    const DeviceArray steps(*device, in.size()), scales(*device, scales_needed * sizeof(float)),
        back(*device, in.size() * sizeof(float));
    floats.upload(in.data());
    CudaKernels& kernels = device->kernels();
    require(kernels.quantize(floats.address(), steps.address(), scales.address(), in.size(), block, device->stream()));
    require(kernels.dequantize(steps.address(), scales.address(), back.address(), in.size(), block, device->stream()));
    require(kernels.dequantize_accumulate(steps.address(), scales.address(), floats.address(), in.size(), block,
                                          device->stream()));
    device->synchronize();
    const auto bytes = [](const auto& values) { return reinterpret_cast<const std::byte*>(values.data()); };
    EXPECT_EQ(test::difference(DType::int8, bytes(expected), downloaded(steps).data(), in.size()), "");
    EXPECT_EQ(test::difference(DType::float32, bytes(expected_scales), downloaded(scales).data(), scales_needed), "");
    EXPECT_EQ(test::difference(DType::float32, bytes(expected_back), downloaded(back).data(), in.size()), "");
    EXPECT_EQ(test::difference(DType::float32, bytes(expected_sum), downloaded(floats).data(), in.size()), "");
  }
}

// ---- pack and copy

TEST(CudaDevicePack, PacksAndUnpacksFiveHundredTensors) {
  std::mt19937_64 random(4);
  std::vector<std::vector<std::byte>> contents;
  std::vector<DeviceArray> tensors, back;
  std::vector<PackedTensor> list, back_list;
  for (std::size_t i = 0; i < 500; ++i) {
    const std::size_t bytes = i % 50 == 7 ? 0 : 4 * (random() % 30000);
    contents.push_back(test::values(DType::uint8, bytes, random));
    tensors.emplace_back(*device, bytes, 4 * (i % 5));
    back.emplace_back(*device, bytes);
    tensors.back().upload(contents.back().data());
    list.push_back({tensors.back().address(), bytes, 0});
    back_list.push_back({back.back().address(), bytes, 0});
  }
  const DeviceArray packed(*device, lay_out(list));
  lay_out(back_list);
  const auto table = device->kernels().make_pack_table(list);
  const auto back_table = device->kernels().make_pack_table(back_list);
  ASSERT_TRUE(table && back_table);
  require(device->kernels().pack(*table, packed.address(), device->stream()));
  require(device->kernels().unpack(*back_table, packed.address(), device->stream()));
  device->synchronize();
  const std::vector<std::byte> whole = downloaded(packed);
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSERT_EQ(std::memcmp(whole.data() + list[i].offset, contents[i].data(), list[i].bytes), 0) << i;
    ASSERT_EQ(downloaded(back[i]), contents[i]) << i;
  }
}

TEST(CudaDeviceCopy, CopiesAtEveryAlignmentAndIntoMappedHostMemory) {
  std::mt19937_64 random(5);
  const std::vector<std::byte> content = test::values(DType::uint8, 100001, random);
  for (std::size_t misalignment = 0; misalignment < 17; ++misalignment) {
    DeviceArray from(*device, content.size(), misalignment);
    const DeviceArray to(*device, content.size(), 3);
    from.upload(content.data());
    require(device->kernels().copy(to.address(), from.address(), content.size(), device->stream()));
    device->synchronize();
    ASSERT_EQ(downloaded(to), content) << misalignment;
    const MappedArray staged(*device, content.size());
    require(device->kernels().copy(staged.address(), from.address(), content.size(), device->stream(), Share::little));
    device->synchronize();
    ASSERT_EQ(std::memcmp(staged.data(), content.data(), content.size()), 0) << misalignment;
  }
}

}  // namespace
}  // namespace tributary::kernels::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr int kSkipped = 77;
  auto device = tributary::kernels::cuda::Device::open();
  if (!device) {
    std::printf("skipped: %s\n", device.error().message.c_str());
    return kSkipped;
  }
  tributary::kernels::cuda::device = device->get();
  std::printf("on %s\n", (*device)->name().c_str());
  return RUN_ALL_TESTS();
}

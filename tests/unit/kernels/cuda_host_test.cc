// The host side of the CUDA kernels, with a fake driver: the tests need neither a GPU nor libcuda.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/cuda/split.h"
#include "tests/unit/kernels/fake_cuda_driver.h"
#include "tributary/kernels/cuda.h"
#include "tributary/kernels/cuda_partial_sums.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::kernels::cuda {
namespace {

using test::FakeCudaDriver;
using testing::HasSubstr;

constexpr CudaImage kImages[] = {{"reduce", "image"}};

std::unique_ptr<CudaKernels> loaded(FakeCudaDriver& driver) {
  auto kernels = CudaKernels::load(driver, 0, kImages);
  EXPECT_TRUE(kernels) << (kernels ? "" : kernels.error().message);
  return kernels ? std::move(*kernels) : nullptr;
}

// ---- Finding the driver

class NamedSymbols final : public SymbolSource {
 public:
  explicit NamedSymbols(std::string missing) : missing_(std::move(missing)) {}
  void* find(const char* name) override {
    return name == missing_ ? nullptr : reinterpret_cast<void*>(&NamedSymbols::nothing);
  }

 private:
  static int nothing() { return 0; }
  std::string missing_;
};

TEST(CudaDriver, BindsWhenEveryCallIsThere) {
  EXPECT_TRUE(bind_cuda_driver(std::make_unique<NamedSymbols>("")));
}

TEST(CudaDriver, NamesTheCallThatIsMissing) {
  const auto driver = bind_cuda_driver(std::make_unique<NamedSymbols>("cuMemcpyAsync"));
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, Errc::unsupported);
  EXPECT_THAT(driver.error().message, HasSubstr("cuMemcpyAsync"));
}

TEST(CudaDriver, OpensOrSaysWhyNot) {
  const auto driver = open_cuda_driver();
  if (driver) GTEST_SKIP() << "this host has a driver";
  EXPECT_EQ(driver.error().code, Errc::unsupported);
  EXPECT_THAT(driver.error().message, HasSubstr("NVIDIA driver"));
}

TEST(CudaDriver, SortsErrorsByWhatTheCallerDoesNext) {
  FakeCudaDriver driver;
  const auto code_of = [&](int result) { return cuda_error(driver, static_cast<CudaResult>(result), "x").code; };
  EXPECT_EQ(code_of(1), Errc::bad_argument);
  EXPECT_EQ(code_of(2), Errc::exhausted);
  EXPECT_EQ(code_of(209), Errc::unsupported);
  EXPECT_EQ(code_of(719), Errc::io);
}

// ---- Loading the kernels

TEST(CudaKernels, AreUnsupportedInABuildWithoutThem) {
  FakeCudaDriver driver;
  const auto kernels = CudaKernels::load(driver, 0, {});
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, Errc::unsupported);
  EXPECT_THAT(kernels.error().message, HasSubstr("TRIBUTARY_WITH_CUDA"));
}

TEST(CudaKernels, RefuseADeviceThatIsNotThere) {
  FakeCudaDriver driver;
  const auto kernels = CudaKernels::load(driver, 1, kImages);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, Errc::bad_argument);
}

TEST(CudaKernels, RefuseADeviceThatIsTooOld) {
  FakeCudaDriver driver;
  driver.capability_major = 7;
  driver.capability_minor = 0;
  const auto kernels = CudaKernels::load(driver, 0, kImages);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, Errc::unsupported);
  EXPECT_THAT(kernels.error().message, HasSubstr("Fake GPU"));
  EXPECT_THAT(kernels.error().message, HasSubstr("7.0"));
}

TEST(CudaKernels, SayWhichDriverCouldNotLoadThem) {
  FakeCudaDriver driver;
  driver.failures["module_load"] = static_cast<CudaResult>(222);
  const auto kernels = CudaKernels::load(driver, 0, kImages);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, Errc::unsupported);
  EXPECT_THAT(kernels.error().message, HasSubstr("CUDA 12.4"));
  EXPECT_EQ(driver.contexts_retained, 0);
  EXPECT_EQ(driver.contexts_pushed, 0);
}

TEST(CudaKernels, NameAKernelThatTheImagesLack) {
  FakeCudaDriver driver;
  driver.missing_kernel = "reduce_bfloat16_avg";
  const auto kernels = CudaKernels::load(driver, 0, kImages);
  ASSERT_FALSE(kernels);
  EXPECT_THAT(kernels.error().message, HasSubstr("reduce_bfloat16_avg"));
  EXPECT_EQ(driver.modules_loaded, 0);
}

TEST(CudaKernels, GiveBackWhatTheyTookOfTheDriver) {
  FakeCudaDriver driver;
  {
    const auto kernels = loaded(driver);
    EXPECT_EQ(driver.modules_loaded, 1);
    EXPECT_EQ(driver.contexts_retained, 1);
    EXPECT_EQ(driver.contexts_pushed, 0);
  }
  EXPECT_EQ(driver.modules_loaded, 0);
  EXPECT_EQ(driver.contexts_retained, 0);
}

// ---- Launching the kernels

TEST(CudaReduce, LaunchesTheKernelOfItsDtypeAndOpOnTheStream) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  const DeviceAddress inputs[] = {0x10000, 0x20000};
  const auto stream = reinterpret_cast<StreamHandle>(&driver);
  ASSERT_TRUE(kernels->reduce(DType::bfloat16, ReduceOp::avg, inputs, 0x30000, 1000, 2, stream));
  ASSERT_EQ(driver.launches.size(), 1U);
  EXPECT_EQ(driver.launches[0].kernel, "reduce_bfloat16_avg");
  EXPECT_EQ(driver.launches[0].stream, stream);
  EXPECT_TRUE(driver.launches[0].in_context);
  EXPECT_EQ(driver.last_reduce.inputs_count, 2U);
  EXPECT_EQ(driver.last_reduce.divisor, 2U);
  EXPECT_EQ(driver.last_reduce.split.vectors, 125U);
  EXPECT_EQ(driver.contexts_pushed, 0);
}

TEST(CudaReduce, SizesTheGridToTheWorkAndToTheChip) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  const DeviceAddress inputs[] = {0x10000, 0x20000};
  ASSERT_TRUE(kernels->reduce(DType::float32, ReduceOp::sum, inputs, 0x30000, 4096, 1, nullptr));
  EXPECT_EQ(driver.launches.back().blocks, 4U);  // 1024 vectors, 256 threads per block
  ASSERT_TRUE(kernels->reduce(DType::float32, ReduceOp::sum, inputs, 0x30000, std::size_t{1} << 30, 1, nullptr));
  EXPECT_EQ(driver.launches.back().blocks, 132U * 4);
}

TEST(CudaReduce, IgnoresTheDivisorOfEveryOpButAvg) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  const DeviceAddress inputs[] = {0x10000};
  ASSERT_TRUE(kernels->reduce(DType::int32, ReduceOp::sum, inputs, 0x30000, 10, 5, nullptr));
  EXPECT_EQ(driver.last_reduce.divisor, 1U);
}

TEST(CudaReduce, LaunchesNothingForNoElements) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  const DeviceAddress inputs[] = {0x10000};
  EXPECT_TRUE(kernels->reduce(DType::int32, ReduceOp::sum, inputs, 0x30000, 0, 1, nullptr));
  EXPECT_TRUE(driver.launches.empty());
}

TEST(CudaReduce, RefusesWhatTheContractDoesNotAllow) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  const DeviceAddress misaligned[] = {0x10002};
  const std::vector<DeviceAddress> too_many(65, 0x10000);
  EXPECT_EQ(kernels->reduce(DType::float32, ReduceOp::sum, misaligned, 0x30000, 8, 1, nullptr).error().code,
            Errc::bad_argument);
  EXPECT_EQ(kernels->reduce(DType::float32, ReduceOp::sum, too_many, 0x30000, 8, 1, nullptr).error().code,
            Errc::bad_argument);
  EXPECT_EQ(kernels->reduce(DType::float32, ReduceOp::avg, {too_many.data(), 2}, 0x30000, 8, 0, nullptr).error().code,
            Errc::bad_argument);
  EXPECT_EQ(
      kernels->convert(DType::float16, DType::bfloat16, 0x10000, 0x20000, 8, Overflow::saturate, nullptr).error().code,
      Errc::bad_argument);
  EXPECT_EQ(kernels->quantize(0x10000, 0x20000, 0x30000, 8, 33, nullptr).error().code, Errc::bad_argument);
  EXPECT_EQ(kernels->quantize(0x10002, 0x20000, 0x30000, 8, 32, nullptr).error().code, Errc::bad_argument);
  EXPECT_EQ(kernels->dequantize(0x10000, 0x30001, 0x20000, 8, 32, nullptr).error().code, Errc::bad_argument);
  EXPECT_TRUE(driver.launches.empty());
}

TEST(CudaReduce, ReportsALaunchThatFailed) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  driver.failures["launch"] = static_cast<CudaResult>(719);
  const DeviceAddress inputs[] = {0x10000};
  const Status status = kernels->reduce(DType::int32, ReduceOp::sum, inputs, 0x30000, 8, 1, nullptr);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::io);
  EXPECT_THAT(status.error().message, HasSubstr("CUDA_ERROR_FAKE"));
  EXPECT_EQ(driver.contexts_pushed, 0);
}

TEST(CudaConvert, ChoosesTheKernelByDirectionAndOverflow) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  ASSERT_TRUE(kernels->convert(DType::float32, DType::float8_e4m3, 0x10000, 0x20000, 64, Overflow::saturate, nullptr));
  EXPECT_EQ(driver.launches.back().kernel, "narrow_float8_e4m3_saturate");
  ASSERT_TRUE(kernels->convert(DType::float32, DType::float16, 0x10000, 0x20000, 64, Overflow::to_infinity, nullptr));
  EXPECT_EQ(driver.launches.back().kernel, "narrow_float16");
  ASSERT_TRUE(kernels->convert(DType::bfloat16, DType::float32, 0x10000, 0x20000, 64, Overflow::to_infinity, nullptr));
  EXPECT_EQ(driver.launches.back().kernel, "widen_bfloat16");
  ASSERT_TRUE(kernels->convert_accumulate(DType::float8_e5m2, 0x10000, 0x20000, 64, nullptr));
  EXPECT_EQ(driver.launches.back().kernel, "accumulate_float8_e5m2");
}

TEST(CudaConvert, LeavesMostOfTheChipToOthersWhenStaging) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  ASSERT_TRUE(kernels->copy(0x10000, 0x20000, std::size_t{1} << 30, nullptr, Share::little));
  EXPECT_EQ(driver.launches.back().kernel, "copy_bytes");
  EXPECT_EQ(driver.launches.back().blocks, 33U);
}

TEST(CudaPack, UsesOneLaunchForAllTensors) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  std::vector<PackedTensor> tensors{{0x10000, 1024, 0}, {0x20000, 0, 0}, {0x30000, 40000, 0}};
  EXPECT_EQ(lay_out(tensors), 41024U);
  {
    const auto table = kernels->make_pack_table(tensors);
    ASSERT_TRUE(table);
    ASSERT_TRUE(kernels->pack(*table, 0x40000, nullptr));
    ASSERT_TRUE(kernels->unpack(*table, 0x40000, nullptr));
    ASSERT_EQ(driver.launches.size(), 2U);
    EXPECT_EQ(driver.launches[0].kernel, "pack");
    EXPECT_EQ(driver.launches[0].blocks, 4U);  // one tensor has 1 chunk, the other tensor has 3
    EXPECT_EQ(driver.allocations, 1);
  }
  EXPECT_EQ(driver.allocations, 0);
}

TEST(CudaPack, GivesBackTheTableWhenItCannotBeFilled) {
  FakeCudaDriver driver;
  const auto kernels = loaded(driver);
  driver.failures["copy"] = static_cast<CudaResult>(700);
  const PackedTensor tensors[] = {{0x10000, 1024, 0}};
  EXPECT_FALSE(kernels->make_pack_table(tensors));
  EXPECT_EQ(driver.allocations, 0);
}

// ---- Copies in whole vectors

TEST(CudaSplit, MovesVectorsOnlyWhereAllArraysLieAlike) {
  const DeviceAddress alike[] = {0x1004, 0x2004};
  const DeviceAddress unlike[] = {0x1004, 0x2008};
  const Split split = split_of_reduce(alike, 0x3004, 100, 4);
  EXPECT_EQ(split.head, 3U);
  EXPECT_EQ(split.vectors, 24U);
  EXPECT_EQ(split_of_reduce(unlike, 0x3004, 100, 4).vectors, 0U);
  EXPECT_EQ(split_of_reduce(alike, 0x3004, 2, 4).vectors, 0U);
}

TEST(CudaSplit, AlignsBothSidesOfAConversion) {
  EXPECT_EQ(split_of_convert(0x1000, 0x2000, 10, 2).vectors, 2U);
  EXPECT_EQ(split_of_convert(0x1004, 0x2002, 10, 2).head, 3U);
  EXPECT_EQ(split_of_convert(0x1004, 0x2000, 10, 2).vectors, 0U);
}

// ---- Partial sums

class CudaPartial : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> launched() const {
    std::vector<std::string> names;
    for (const auto& launch : driver_.launches) names.push_back(launch.kernel);
    return names;
  }
  FakeCudaDriver driver_;
  std::unique_ptr<CudaKernels> kernels_ = loaded(driver_);
  CudaPartialSums sums_ = *CudaPartialSums::load(*kernels_);
  const std::vector<DevicePartialInput> values_{{.address = 0x10000, .bytes = 4000},
                                                {.address = 0x20000, .bytes = 4000}};
  const std::vector<DevicePartialInput> mixed_{{.address = 0x10000, .bytes = 4000},
                                               {.address = 0x20001, .bytes = 77, .is_form = true}};
};

TEST_F(CudaPartial, ChecksMeasuresPlacesAndWritesAForm) {
  ASSERT_TRUE(sums_.add(DType::float32, values_, 1000, 0x30001, 0x40000, nullptr));
  EXPECT_THAT(launched(), testing::ElementsAre("partial_check", "partial_measure_float32", "partial_place",
                                               "partial_write_float32"));
  EXPECT_EQ(driver_.launches[0].blocks, 2U);
  EXPECT_EQ(driver_.launches[1].blocks, 4U);
  EXPECT_EQ(driver_.launches[2].blocks, 1U);
  EXPECT_EQ(driver_.contexts_pushed, 0);
}

TEST_F(CudaPartial, RoundsValuesByOneKernelAndChecksFormsBefore) {
  ASSERT_TRUE(sums_.round(DType::float32, values_, 1000, 0x30000, 2, 0, nullptr));
  const DeviceAddress addresses[] = {0x10000, 0x20000};
  ASSERT_TRUE(sums_.exact_sum(DType::bfloat16, addresses, 0x30000, 1000, 2, nullptr));
  ASSERT_TRUE(sums_.round(DType::float32, mixed_, 1000, 0x30000, 2, 0x40000, nullptr));
  EXPECT_THAT(launched(), testing::ElementsAre("partial_round_float32", "partial_round_bfloat16", "partial_check",
                                               "partial_round_float32"));
}

TEST_F(CudaPartial, TellsTheKernelsWhereEverythingIs) {
  const std::vector<DevicePartialInput> three{mixed_[0], mixed_[1], values_[1]};
  ASSERT_TRUE(sums_.add(DType::float32, three, 1000, 0x30001, 0x40000, nullptr));
  const PartialArguments& told = driver_.last_partial;
  const auto at = [](const auto* place) { return reinterpret_cast<DeviceAddress>(place); };
  EXPECT_EQ(at(static_cast<const std::byte*>(told.inputs[1])), 0x20001U);
  EXPECT_EQ(told.bytes[1], 77U);
  EXPECT_EQ(told.forms, 0b010U);
  EXPECT_EQ(told.inputs_count, 3U);
  EXPECT_EQ(told.inputs_log2, 2U);
  EXPECT_EQ(told.count, 1000U);
  EXPECT_EQ(told.divisor, 1U);
  EXPECT_EQ(told.least, form_range_of(DType::float32).least);
  EXPECT_EQ(told.end, form_range_of(DType::float32).end());
  EXPECT_EQ(at(static_cast<const std::byte*>(told.out)), 0x30001U);
  // The workspace has the result, the places of four blocks, and for each input the offsets of four.
  EXPECT_EQ(at(told.result), 0x40000U);
  EXPECT_EQ(at(told.places), 0x40000U + sizeof(PartialResult));
  EXPECT_EQ(told.offsets, told.places + 4);
  EXPECT_EQ(at(told.offsets + 3 * 4), 0x40000U + partial_workspace_bytes(3, 1000));
  ASSERT_TRUE(sums_.round(DType::float64, {&mixed_[1], 1}, 1000, 0x30000, 7, 0x40000, nullptr));
  EXPECT_EQ(driver_.last_partial.forms, 1U);
  EXPECT_EQ(driver_.last_partial.inputs_log2, 0U);
  EXPECT_EQ(driver_.last_partial.divisor, 7U);
  EXPECT_EQ(driver_.last_partial.least, form_range_of(DType::float64).least);
}

TEST_F(CudaPartial, WritesTheAnswerOfValuesToAWorkspace) {
  ASSERT_TRUE(sums_.round(DType::float32, values_, 1000, 0x30000, 2, 0x40000, nullptr));
  EXPECT_EQ(reinterpret_cast<DeviceAddress>(driver_.last_partial.result), 0x40000U);
  const std::vector<DevicePartialInput> nothing{{.address = 0x10000}};
  ASSERT_TRUE(sums_.round(DType::float32, nothing, 0, 0x30000, 2, 0x40000, nullptr));
  EXPECT_THAT(launched(),
              testing::ElementsAre("partial_check", "partial_round_float32", "partial_check", "partial_round_float32"));
  ASSERT_TRUE(sums_.round(DType::float32, nothing, 0, 0x30000, 2, 0, nullptr));
  EXPECT_EQ(driver_.launches.size(), 4U) << "nothing to do";
}

TEST_F(CudaPartial, RefusesWhatTheContractDoesNotAllow) {
  const auto refused = [](const Status& status) { return !status && status.error().code == Errc::bad_argument; };
  const std::vector<DevicePartialInput> too_many(65, values_[0]);
  EXPECT_TRUE(refused(sums_.add(DType::int32, values_, 1000, 0x30000, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.add(DType::float32, {}, 1000, 0x30000, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.add(DType::float32, too_many, 1000, 0x30000, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.add(DType::float32, values_, 999, 0x30000, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.add(DType::float32, values_, 1000, 0x30000, 0x40004, nullptr)));
  EXPECT_TRUE(refused(sums_.round(DType::float32, values_, 1000, 0x30002, 1, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.round(DType::float32, values_, 1000, 0x30000, 0, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.round(DType::float32, values_, 1000, 0x30000, 1U << 26U, 0x40000, nullptr)));
  EXPECT_TRUE(refused(sums_.add(DType::float32, values_, 1000, 0x30000, 0, nullptr)));
  EXPECT_TRUE(refused(sums_.round(DType::float32, mixed_, 1000, 0x30000, 2, 0, nullptr)));
  EXPECT_TRUE(driver_.launches.empty());
  EXPECT_TRUE(sums_.round(DType::float32, values_, 1000, 0x30000, (1U << 26U) - 1, 0, nullptr));
}

TEST_F(CudaPartial, SaysWhatIsWrong) {
  const auto said = [](const Status& status) { return status ? "" : status.error().message; };
  EXPECT_THAT(said(sums_.round(DType::float32, values_, 1000, 0x30000, 1U << 26U, 0, nullptr)),
              HasSubstr("divided by 1 to 67108863, not by 67108864"));
  EXPECT_THAT(said(sums_.round(DType::float32, values_, 1000, 0x30002, 2, 0, nullptr)),
              HasSubstr("written to a multiple of 4, not to 196610"));
  EXPECT_THAT(said(sums_.round(DType::float32, mixed_, 1000, 0x30000, 2, 0, nullptr)), HasSubstr("workspace"));
}

TEST_F(CudaPartial, CountsTheElementsOfAFormIn32Bits) {
  constexpr std::size_t kMost = UINT32_MAX;
  const auto add = [this](std::size_t count) {
    const std::vector<DevicePartialInput> values{{.address = 0x10000, .bytes = count}};
    return sums_.add(DType::float8_e4m3, values, count, 0x30000, 0x40000, nullptr);
  };
  EXPECT_TRUE(add(kMost));
  const Status refused = add(kMost + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::bad_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("4294967295"));
}

TEST_F(CudaPartial, NamesAKernelThatTheImagesLack) {
  driver_.missing_kernel = "partial_write_float8_e5m2";
  const auto sums = CudaPartialSums::load(*kernels_);
  ASSERT_FALSE(sums);
  EXPECT_THAT(sums.error().message, HasSubstr("partial_write_float8_e5m2"));
}

}  // namespace
}  // namespace tributary::kernels::cuda

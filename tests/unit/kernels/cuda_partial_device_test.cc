// Partial sums on a real device beside those of the host: forms have the same bytes, values the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/device_array.h"
#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/tested_device.h"
#include "tributary/kernels/cuda_partial_sums.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::kernels::cuda {
namespace {

using Bytes = std::vector<std::byte>;

/// Inputs of the host, and their copies on the device.
class Inputs {
 public:
  void add(const Bytes& bytes, bool is_form) {
    host.push_back({bytes, is_form});
    arrays_.emplace_back(*device, bytes.size(), is_form ? 5 : 0);
    arrays_.back().upload(bytes.data());
    there.push_back({.address = arrays_.back().address(), .bytes = bytes.size(), .is_form = is_form});
  }
  std::vector<PartialInput> host;
  std::vector<DevicePartialInput> there;

 private:
  std::vector<DeviceArray> arrays_;
};

class CudaDevicePartial : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    auto loaded = CudaPartialSums::load(device->kernels());
    ASSERT_TRUE(loaded) << loaded.error().message;
    sums_.emplace(*loaded);
  }

  static Bytes host_form(const std::vector<PartialInput>& inputs, std::size_t count) {
    Bytes form(form_bytes_max(GetParam(), count));
    form.resize(add_partial_sums(GetParam(), inputs, count, form));
    return form;
  }
  PartialAnswer add(const Inputs& inputs, std::size_t count, Bytes& form) {
    const DeviceArray out(*device, form_bytes_max(GetParam(), count), 1);
    const DeviceArray workspace(*device, partial_workspace_bytes(inputs.there.size(), count));
    require(sums_->add(GetParam(), inputs.there, count, out.address(), workspace.address(), device->stream()));
    device->synchronize();
    PartialAnswer answer;
    workspace.download(&answer, sizeof(answer));
    form.resize(answer.bytes);
    out.download(form.data(), form.size());
    return answer;
  }
  Bytes rounded(const Inputs& inputs, std::size_t count, std::uint32_t divisor) {
    const DeviceArray out(*device, count * size_of(GetParam()));
    const DeviceArray workspace(*device, partial_workspace_bytes(inputs.there.size(), count));
    require(
        sums_->round(GetParam(), inputs.there, count, out.address(), divisor, workspace.address(), device->stream()));
    device->synchronize();
    Bytes bytes(out.bytes());
    out.download(bytes.data());
    return bytes;
  }

  void compare(test::Family family, std::size_t count, std::size_t inputs) {
    SCOPED_TRACE(std::string(test::to_string(family)) + ", " + std::to_string(inputs) + " of " + std::to_string(count));
    const auto arrays = test::exact_inputs(GetParam(), family, inputs, count, inputs);
    Inputs values, mixed;
    for (const Bytes& array : arrays) values.add(array, false);
    const Bytes all = host_form(values.host, count);
    Bytes form;
    EXPECT_EQ(add(values, count, form).fault, 0U);
    ASSERT_TRUE(form == all);
    const std::size_t half = (inputs + 1) / 2;
    const Bytes lower =
        host_form({values.host.begin(), values.host.begin() + static_cast<std::ptrdiff_t>(half)}, count);
    mixed.add(lower, true);
    for (std::size_t k = half; k < inputs; ++k) mixed.add(arrays[k], false);
    EXPECT_EQ(add(mixed, count, form).fault, 0U);
    ASSERT_TRUE(form == all);
    for (const std::uint32_t divisor : {1U, 3U, static_cast<std::uint32_t>(inputs)}) {
      Bytes want(count * size_of(GetParam()));
      round_partial_sums(GetParam(), values.host, want.data(), count, divisor);
      ASSERT_TRUE(rounded(values, count, divisor) == want) << "by " << divisor;
      ASSERT_TRUE(rounded(mixed, count, divisor) == want) << "by " << divisor;
    }
  }

  std::optional<CudaPartialSums> sums_;
};

TEST_P(CudaDevicePartial, GivesTheHostsBytesAndBitsForEveryFamily) {
  for (const test::Family family : test::kFamilies) {
    for (const std::size_t inputs : {1U, 2U, 3U, 8U, 64U}) ASSERT_NO_FATAL_FAILURE(compare(family, 700, inputs));
  }
}

TEST_P(CudaDevicePartial, GivesTheHostsBytesAtEveryLength) {
  for (const std::size_t count : {0U, 1U, 255U, 256U, 257U, 1000U, 1'000'003U})
    ASSERT_NO_FATAL_FAILURE(compare(test::Family::any, count, 3));
}

TEST_P(CudaDevicePartial, SumsInPlace) {
  constexpr std::size_t kCount = 1000;
  const auto arrays = test::exact_inputs(GetParam(), test::Family::any, 3, kCount, 1);
  std::vector<DeviceArray> copies;
  std::vector<DeviceAddress> addresses;
  std::vector<const void*> pointers;
  for (const Bytes& array : arrays) {
    copies.emplace_back(*device, array.size());
    copies.back().upload(array.data());
    addresses.push_back(copies.back().address());
    pointers.push_back(array.data());
  }
  require(sums_->exact_sum(GetParam(), addresses, addresses[1], kCount, 3, device->stream()));
  device->synchronize();
  Bytes want(arrays[0].size()), got(arrays[0].size());
  copies[1].download(got.data());
  exact_sum(GetParam(), pointers, want.data(), kCount, 3);
  EXPECT_TRUE(got == want);
}

TEST_P(CudaDevicePartial, RefusesWhatIsNoForm) {
  const auto arrays = test::exact_inputs(GetParam(), test::Family::any, 2, 300, 1);
  Bytes form = host_form({{arrays[0], false}}, 300);
  form.pop_back();
  Inputs inputs;
  inputs.add(arrays[1], false);
  inputs.add(form, true);
  Bytes none;
  const PartialAnswer answer = add(inputs, 300, none);
  EXPECT_EQ(answer.bytes, 0U);
  EXPECT_EQ(answer.fault, 2U);
}

// A workspace of any bytes, and then one that a refused form has left.
TEST_P(CudaDevicePartial, WritesTheFaultOfEachCallToItsWorkspace) {
  constexpr std::size_t kCount = 300;
  const auto arrays = test::exact_inputs(GetParam(), test::Family::any, 2, kCount, 1);
  Bytes form = host_form({{arrays[0], false}}, kCount);
  form.pop_back();
  Inputs values, broken;
  values.add(arrays[0], false);
  values.add(arrays[1], false);
  broken.add(arrays[1], false);
  broken.add(form, true);
  const DeviceArray out(*device, kCount * size_of(GetParam()));
  DeviceArray workspace(*device, partial_workspace_bytes(2, kCount));
  workspace.upload(Bytes(workspace.bytes(), std::byte{0xAB}).data());
  const auto fault_of = [&](const Inputs& inputs) {
    require(sums_->round(GetParam(), inputs.there, kCount, out.address(), 1, workspace.address(), device->stream()));
    device->synchronize();
    PartialAnswer answer;
    workspace.download(&answer, sizeof(answer));
    return answer.fault;
  };
  EXPECT_EQ(fault_of(values), 0U);
  EXPECT_EQ(fault_of(broken), 2U);
  EXPECT_EQ(fault_of(values), 0U);
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaDevicePartial, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::kernels::cuda

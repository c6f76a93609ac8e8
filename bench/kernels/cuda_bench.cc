// Measures the CUDA kernels beside the device's own copy, one after the other in every round.
//
// Rates are bytes read and written per second, in GB/s (1e9), by the device's clock; each is the median of its rounds,
// and of_copy the median of the rounds' ratios. The yardstick is the driver's copy of equally many bytes from device to
// device, and for host memory the driver's copy to the host.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/device_array.h"
#include "kernels/reference/reduce.h"
#include "tributary/protocol/numerics.h"

namespace tributary::bench {
namespace {

using namespace kernels::cuda;
using kernels::Overflow;

Device* device = nullptr;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kRounds = 15;

double median(std::vector<double> samples) {
  std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
  return samples[samples.size() / 2];
}

/// `work` moves `bytes` bytes; the yardstick copies equally many bytes between arrays of the device, or to the host.
template <class Work>
void compare(benchmark::State& state, std::size_t bytes, DeviceAddress copy_to, DeviceAddress copy_from,
             std::size_t copy_bytes, std::size_t copy_moved, Work work) {
  Timer timer(*device);
  const auto copy = [&] {
    require(device->driver(), device->driver().copy(copy_to, copy_from, copy_bytes, device->stream()), "copying");
  };
  for (int warm = 0; warm < 3; ++warm) {
    work();
    copy();
  }
  device->synchronize();
  std::vector<double> work_rate, copy_rate, ratio;
  for (auto iteration : state) {
    const double seconds = timer.seconds(work);
    state.SetIterationTime(seconds);
    work_rate.push_back(static_cast<double>(bytes) / seconds * 1e-9);
    copy_rate.push_back(static_cast<double>(copy_moved) / timer.seconds(copy) * 1e-9);
    ratio.push_back(work_rate.back() / copy_rate.back());
  }
  state.counters["GB/s"] = median(work_rate);
  state.counters["copy"] = median(copy_rate);
  state.counters["of_copy"] = median(ratio);
}

/// Copies half of the bytes from device to device, because a copy reads and writes.
template <class Work>
void compare_on_device(benchmark::State& state, std::size_t bytes, Work work) {
  const DeviceArray from(*device, bytes / 2), to(*device, bytes / 2);
  compare(state, bytes, to.address(), from.address(), bytes / 2, bytes / 2 * 2, work);
}

/// Fills arrays with words that differ in every array, and are neither NaN nor negative in any float format: every byte
/// may be a float8. So all results have the reference's bits; a NaN could have any payload.
std::vector<DeviceArray> arrays(std::size_t count, std::size_t bytes) {
  constexpr std::size_t kArraysMax = 64;
  static std::vector<std::uint32_t> pattern;
  while (pattern.size() < bytes / sizeof(std::uint32_t) + kArraysMax) {
    pattern.push_back(static_cast<std::uint32_t>(pattern.size() * 2654435761U) & 0x3F3F3F3FU);
  }
  std::vector<DeviceArray> made;
  for (std::size_t k = 0; k < count; ++k) {
    made.emplace_back(*device, bytes);
    made.back().upload(pattern.data() + k);
  }
  return made;
}

bool first_elements_are_right(DType dtype, ReduceOp op, const std::vector<DeviceArray>& inputs, const DeviceArray& out,
                              std::uint32_t divisor) {
  constexpr std::size_t kCount = 4099;
  const std::size_t bytes = kCount * size_of(dtype);
  std::vector<std::vector<std::byte>> contents;
  std::vector<const void*> pointers;
  for (const DeviceArray& input : inputs) {
    contents.emplace_back(bytes);
    input.download(contents.back().data(), bytes);
  }
  for (const auto& content : contents) pointers.push_back(content.data());
  std::vector<std::byte> expected(bytes), actual(bytes);
  kernels::reference::reduce(dtype, op, pointers, expected.data(), kCount, divisor);
  out.download(actual.data(), bytes);
  return expected == actual;
}

void reduce_benchmark(benchmark::State& state, DType dtype, ReduceOp op, std::size_t inputs_count, std::size_t bytes) {
  const std::vector<DeviceArray> inputs = arrays(inputs_count, bytes);
  const DeviceArray out(*device, bytes);
  std::vector<DeviceAddress> addresses;
  for (const DeviceArray& input : inputs) addresses.push_back(input.address());
  const auto divisor = static_cast<std::uint32_t>(op == ReduceOp::avg ? inputs_count : 1);
  const auto work = [&] {
    require(device->kernels().reduce(dtype, op, addresses, out.address(), bytes / size_of(dtype), divisor,
                                     device->stream()));
  };
  work();
  device->synchronize();
  if (!first_elements_are_right(dtype, op, inputs, out, divisor))
    return state.SkipWithError("reduce differs from the reference");
  compare_on_device(state, bytes * (inputs_count + 1), work);
}

void convert_benchmark(benchmark::State& state, DType from, DType to, std::size_t count) {
  const std::vector<DeviceArray> in = arrays(1, count * size_of(from));
  const DeviceArray out(*device, count * size_of(to));
  compare_on_device(state, count * (size_of(from) + size_of(to)), [&] {
    require(device->kernels().convert(from, to, in[0].address(), out.address(), count, Overflow::to_infinity,
                                      device->stream()));
  });
}

void accumulate_benchmark(benchmark::State& state, DType from, std::size_t count) {
  const std::vector<DeviceArray> in = arrays(1, count * size_of(from));
  const DeviceArray out(*device, count * sizeof(float));
  compare_on_device(state, count * (size_of(from) + 2 * sizeof(float)), [&] {
    require(device->kernels().convert_accumulate(from, in[0].address(), out.address(), count, device->stream()));
  });
}

void quantize_benchmark(benchmark::State& state, bool back, std::size_t count) {
  constexpr std::size_t kBlock = 128;
  const std::vector<DeviceArray> floats = arrays(1, count * sizeof(float));
  const DeviceArray steps(*device, count), scales(*device, count / kBlock * sizeof(float));
  const auto there = [&] {
    require(device->kernels().quantize(floats[0].address(), steps.address(), scales.address(), count, kBlock,
                                       device->stream()));
  };
  const auto and_back = [&] {
    require(device->kernels().dequantize(steps.address(), scales.address(), floats[0].address(), count, kBlock,
                                         device->stream()));
  };
  there();
  const std::size_t bytes = count * (sizeof(float) + 1) + scales.bytes();
  back ? compare_on_device(state, bytes, and_back) : compare_on_device(state, bytes, there);
}

/// Makes 500 tensors of 1 KiB to 4 MiB, equally many of each order of magnitude.
void pack_benchmark(benchmark::State& state, bool unpacks) {
  constexpr std::size_t kTensors = 500;
  std::vector<DeviceArray> tensors;
  std::vector<PackedTensor> list;
  std::size_t total = 0;
  for (std::size_t i = 0; i < kTensors; ++i) {
    const std::size_t bytes = (std::size_t{1024} << (i * 7 % 13)) / 4 * 4;
    tensors.emplace_back(*device, bytes);
    list.push_back({tensors.back().address(), bytes, 0});
    total += bytes;
  }
  const DeviceArray packed(*device, lay_out(list));
  const auto table = device->kernels().make_pack_table(list);
  if (!table) return state.SkipWithError(table.error().message.c_str());
  compare_on_device(state, 2 * total, [&] {
    require(unpacks ? device->kernels().unpack(*table, packed.address(), device->stream())
                    : device->kernels().pack(*table, packed.address(), device->stream()));
  });
}

/// Measures bytes that cross the bus, beside the driver's copy of equally many bytes.
void stage_benchmark(benchmark::State& state, DType to, bool from_host) {
  constexpr std::size_t kCount = 16 * kMiB;
  const std::size_t bytes = kCount * size_of(to);
  const std::vector<DeviceArray> floats = arrays(1, kCount * sizeof(float));
  const MappedArray host(*device, bytes);
  std::memset(host.data(), 0, bytes);
  const auto work = [&] {
    CudaKernels& kernels = device->kernels();
    const DeviceAddress in = from_host ? host.address() : floats[0].address();
    const DeviceAddress out = from_host ? floats[0].address() : host.address();
    if (to == DType::float32) return require(kernels.copy(out, in, bytes, device->stream(), Share::little));
    require(from_host ? kernels.convert(to, DType::float32, in, out, kCount, Overflow::to_infinity, device->stream(),
                                        Share::little)
                      : kernels.convert(DType::float32, to, in, out, kCount, Overflow::to_infinity, device->stream(),
                                        Share::little));
  };
  const auto pointer = reinterpret_cast<DeviceAddress>(host.data());
  compare(state, bytes, from_host ? floats[0].address() : pointer, from_host ? pointer : floats[0].address(), bytes,
          bytes, work);
}

template <class Body>
void add(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->UseManualTime()->Iterations(kRounds)->Unit(benchmark::kMicrosecond);
}

void register_all() {
  const auto name_of = [](DType dtype) { return std::string(to_string(dtype)); };
  for (const std::size_t bytes : {64 * kMiB, 256 * kMiB}) {
    const std::string place = std::to_string(bytes / kMiB) + "MiB/";
    for (const std::size_t inputs : {2U, 4U, 8U}) {
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::int32, DType::int8,
                                DType::float8_e4m3, DType::float8_e5m2}) {
        add("reduce/" + place + name_of(dtype) + "/sum/K=" + std::to_string(inputs),
            [=](benchmark::State& state) { reduce_benchmark(state, dtype, ReduceOp::sum, inputs, bytes); });
      }
    }
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2}) {
      const std::size_t count = bytes / sizeof(float);
      add("convert/" + place + "float32_to_" + name_of(dtype),
          [=](benchmark::State& state) { convert_benchmark(state, DType::float32, dtype, count); });
      add("convert/" + place + name_of(dtype) + "_to_float32",
          [=](benchmark::State& state) { convert_benchmark(state, dtype, DType::float32, count); });
      add("convert/" + place + "accumulate_" + name_of(dtype),
          [=](benchmark::State& state) { accumulate_benchmark(state, dtype, count); });
    }
    add("convert/" + place + "quantize",
        [=](benchmark::State& state) { quantize_benchmark(state, false, bytes / sizeof(float)); });
    add("convert/" + place + "dequantize",
        [=](benchmark::State& state) { quantize_benchmark(state, true, bytes / sizeof(float)); });
  }
  for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (std::uint8_t op = 1; op < kReduceOpCount; ++op) {
      if (!is_defined(ReduceOp{op}, DType{dtype})) continue;
      add("reduce/64MiB/" + name_of(DType{dtype}) + "/" + std::string(to_string(ReduceOp{op})) + "/K=4",
          [=](benchmark::State& state) { reduce_benchmark(state, DType{dtype}, ReduceOp{op}, 4, 64 * kMiB); });
    }
  }
  add("pack/500_tensors", [](benchmark::State& state) { pack_benchmark(state, false); });
  add("unpack/500_tensors", [](benchmark::State& state) { pack_benchmark(state, true); });
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float8_e4m3}) {
    add("stage/to_host/" + name_of(dtype), [=](benchmark::State& state) { stage_benchmark(state, dtype, false); });
    add("stage/from_host/" + name_of(dtype), [=](benchmark::State& state) { stage_benchmark(state, dtype, true); });
  }
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) {
  auto device = tributary::kernels::cuda::Device::open();
  if (!device) {
    std::printf("skipped: %s\n", device.error().message.c_str());
    return 77;
  }
  tributary::bench::device = device->get();
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("device", (*device)->name());
  tributary::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

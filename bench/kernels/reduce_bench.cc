// Measures kernels::reduce beside the machine's own mix of reads and writes, a plain loop, and for sums the direct loop
// with Highway. All take turns in every round, so that a busy neighbour slows all of them equally.
//
// Rates are bytes of input read per second by one core, in GB/s (1e9); each is the median of its rounds. of_machine,
// of_plain and of_direct are the medians of the rounds' ratios. The time of a benchmark is only the time of reduce.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "bench/kernels/convert_bench.h"
#include "bench/kernels/direct_loop.h"
#include "bench/kernels/exact_bench.h"
#include "bench/kernels/forms_bench.h"
#include "bench/kernels/huge_array.h"
#include "bench/kernels/memory_probe.h"
#include "bench/kernels/plain_loop.h"
#include "bench/kernels/timing.h"
#include "kernels/reference/reduce.h"
#include "tributary/kernels/reduce.h"
#include "tributary/kernels/target.h"
#include "tributary/protocol/numerics.h"

namespace tributary::bench {
namespace {

struct Shape {
  DType dtype;
  ReduceOp op;
  std::size_t inputs;
  std::size_t input_bytes;
};

/// Makes 64 bits of elements from random bits. Floats lie between 1/2 and 1, so that neither a sum nor a product of a
/// few takes a special path; integers are arbitrary.
std::uint64_t elements_of(DType dtype, std::uint64_t random) {
  const auto floats = [random](std::uint64_t fraction, std::uint64_t half) { return (random & fraction) | half; };
  switch (dtype) {
    case DType::float16:
      return floats(0x03FF03FF03FF03FFU, 0x3800380038003800U);
    case DType::bfloat16:
      return floats(0x007F007F007F007FU, 0x3F003F003F003F00U);
    case DType::float32:
      return floats(0x007FFFFF007FFFFFU, 0x3F0000003F000000U);
    case DType::float64:
      return floats(0x000FFFFFFFFFFFFFU, 0x3FE0000000000000U);
    case DType::float8_e4m3:
      return floats(0x0707070707070707U, 0x3030303030303030U);
    case DType::float8_e5m2:
      return floats(0x0303030303030303U, 0x3838383838383838U);
    default:
      return random;
  }
}

class Arrays {
 public:
  explicit Arrays(const Shape& shape) : shape_(shape), out_(shape.input_bytes) {
    std::uint64_t state = 1;
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      inputs_.emplace_back(shape.input_bytes);
      for (std::size_t i = 0; i < shape.input_bytes; i += sizeof(std::uint64_t)) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t bits = elements_of(shape.dtype, state ^ state >> 32);
        std::memcpy(inputs_.back().data() + i, &bits, sizeof(bits));
      }
      pointers_.push_back(inputs_.back().data());
      byte_pointers_.push_back(inputs_.back().data());
    }
  }

  [[nodiscard]] std::span<const void* const> inputs() const { return pointers_; }
  [[nodiscard]] std::span<const std::byte* const> input_bytes() const { return byte_pointers_; }
  [[nodiscard]] std::byte* out() const { return out_.data(); }
  [[nodiscard]] std::size_t count() const { return shape_.input_bytes / size_of(shape_.dtype); }

  /// Compares the first and the last elements with the reference, before the measurement.
  [[nodiscard]] bool reduce_is_right() {
    kernels::reduce(shape_.dtype, shape_.op, inputs(), out(), count(), divisor());
    const std::size_t part = std::min<std::size_t>(count(), 4099);
    return part_is_right(0, part) && part_is_right(count() - part, part);
  }

  [[nodiscard]] std::uint32_t divisor() const {
    return shape_.op == ReduceOp::avg ? static_cast<std::uint32_t>(shape_.inputs) : 1;
  }

 private:
  [[nodiscard]] bool part_is_right(std::size_t first, std::size_t elements) const {
    const std::size_t size = size_of(shape_.dtype);
    std::vector<const void*> from;
    for (const std::byte* input : byte_pointers_) from.push_back(input + first * size);
    std::vector<std::byte> expected(elements * size);
    kernels::reference::reduce(shape_.dtype, shape_.op, from, expected.data(), elements, divisor());
    return std::memcmp(expected.data(), out() + first * size, expected.size()) == 0;
  }

  Shape shape_;
  std::vector<HugeArray> inputs_;
  HugeArray out_;
  std::vector<const void*> pointers_;
  std::vector<const std::byte*> byte_pointers_;
};

const MemoryProbe& fastest_probe(const Arrays& arrays, std::size_t bytes, std::size_t calls) {
  const MemoryProbe* best = &memory_probes().front();
  double best_seconds = std::numeric_limits<double>::infinity();
  for (const MemoryProbe& probe : memory_probes()) {
    std::vector<double> samples;
    for (int round = 0; round < 7; ++round) {
      samples.push_back(seconds_per_call(calls, [&] { probe.run(arrays.input_bytes(), arrays.out(), bytes); }));
    }
    if (median(samples) < best_seconds) {
      best = &probe;
      best_seconds = median(samples);
    }
  }
  return *best;
}

void reduce_benchmark(benchmark::State& state, Shape shape) {
  Arrays arrays(shape);
  if (!arrays.reduce_is_right()) return state.SkipWithError("reduce differs from the reference");

  const std::size_t read_bytes = shape.inputs * shape.input_bytes;
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{16} << 20) / read_bytes);
  const MemoryProbe& probe = fastest_probe(arrays, shape.input_bytes, calls);
  const PlainReduce plain = plain_reduce(shape.dtype, shape.op, shape.inputs);
  const DirectSum direct = shape.op == ReduceOp::sum ? direct_sum(shape.dtype, shape.inputs) : nullptr;

  // A plain loop can be a hundred times slower than the kernel.
  std::size_t plain_calls = calls;
  const auto run_plain = [&] { plain(arrays.inputs(), arrays.out(), arrays.count(), arrays.divisor()); };
  if (plain != nullptr) {
    constexpr double kPlainSeconds = 2e-3;
    const double once = seconds_per_call(1, run_plain);
    plain_calls = std::clamp<std::size_t>(static_cast<std::size_t>(kPlainSeconds / once), 1, calls);
  }

  std::vector<double> reduce_rate, machine_rate, plain_rate, direct_rate, of_machine, of_plain, of_direct;
  const auto rate = [&](double seconds) { return static_cast<double>(read_bytes) / seconds * 1e-9; };
  for (auto iteration : state) {
    const double reduce_seconds = seconds_per_call(calls, [&] {
      kernels::reduce(shape.dtype, shape.op, arrays.inputs(), arrays.out(), arrays.count(), arrays.divisor());
    });
    state.SetIterationTime(reduce_seconds);
    reduce_rate.push_back(rate(reduce_seconds));
    machine_rate.push_back(
        rate(seconds_per_call(calls, [&] { probe.run(arrays.input_bytes(), arrays.out(), shape.input_bytes); })));
    of_machine.push_back(reduce_rate.back() / machine_rate.back());
    if (direct != nullptr) {
      direct_rate.push_back(
          rate(seconds_per_call(calls, [&] { direct(arrays.inputs(), arrays.out(), arrays.count()); })));
      of_direct.push_back(reduce_rate.back() / direct_rate.back());
    }
    if (plain == nullptr) continue;
    plain_rate.push_back(rate(seconds_per_call(plain_calls, run_plain)));
    of_plain.push_back(reduce_rate.back() / plain_rate.back());
  }
  state.counters["GB/s"] = median(reduce_rate);
  state.counters["machine"] = median(machine_rate);
  state.counters["of_machine"] = median(of_machine);
  if (plain != nullptr) {
    state.counters["plain"] = median(plain_rate);
    state.counters["of_plain"] = median(of_plain);
  }
  if (direct != nullptr) {
    state.counters["direct"] = median(direct_rate);
    state.counters["of_direct"] = median(of_direct);
  }
  state.SetLabel(std::string(probe.name));
}

void add(std::string_view place, Shape shape, int rounds) {
  const std::string name = std::string("reduce/") + std::string(place) + "/" + std::string(to_string(shape.dtype)) +
                           "/" + std::string(to_string(shape.op)) + "/K=" + std::to_string(shape.inputs);
  benchmark::RegisterBenchmark(name.c_str(), [shape](benchmark::State& state) { reduce_benchmark(state, shape); })
      ->UseManualTime()
      ->Iterations(rounds)
      ->Unit(benchmark::kMicrosecond);
}

/// `total` is the number of bytes of the inputs and the result together.
Shape in_cache(DType dtype, ReduceOp op, std::size_t inputs, std::size_t total) {
  return {dtype, op, inputs, total / (inputs + 1) / 512 * 512};
}

void register_all() {
  constexpr DType kTargets[] = {DType::float32, DType::bfloat16, DType::float16, DType::int32};
  for (const std::size_t inputs : {2U, 4U, 8U}) {
    for (const DType dtype : kTargets) {
      add("64MiB", {dtype, ReduceOp::sum, inputs, std::size_t{64} << 20}, 15);
      add("32KiB", in_cache(dtype, ReduceOp::sum, inputs, std::size_t{32} << 10), 61);
      add("256KiB", in_cache(dtype, ReduceOp::sum, inputs, std::size_t{256} << 10), 61);
    }
  }
  for (const std::size_t inputs : {2U, 4U, 8U}) {
    for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
        if (!is_defined(ReduceOp{op}, DType{dtype})) continue;
        add("all", {DType{dtype}, ReduceOp{op}, inputs, std::size_t{16} << 20}, 9);
        add("all32KiB", in_cache(DType{dtype}, ReduceOp{op}, inputs, std::size_t{32} << 10), 21);
        add("all256KiB", in_cache(DType{dtype}, ReduceOp{op}, inputs, std::size_t{256} << 10), 21);
      }
    }
  }
  for (const std::size_t inputs : {16U, 32U, 64U})
    add("many", {DType::float32, ReduceOp::sum, inputs, std::size_t{16} << 20}, 9);
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("kernels target",
                              std::string(tributary::kernels::to_string(tributary::kernels::active_target())));
  tributary::bench::register_all();
  tributary::bench::register_convert_benchmarks();
  tributary::bench::register_exact_benchmarks();
  tributary::bench::register_forms_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

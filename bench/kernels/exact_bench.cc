// Measures kernels::exact_sum beside kernels::reduce, which rounds each partial sum. Both take turns in every round.
//
// Inputs are normally distributed; those of exact_spread are normally distributed, times 2^-28 to 1. Rates are bytes
// of input read per second by one core, in GB/s (1e9), as medians; of_reduce is the median of the rounds' ratios.
#include "bench/kernels/exact_bench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/kernels/huge_array.h"
#include "bench/kernels/timing.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/convert.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/reduce.h"

namespace tributary::bench {
namespace {

struct Shape {
  DType dtype;
  std::size_t inputs;
  std::size_t input_bytes;
  bool average;
  bool spread = false;  // values are normally distributed, times 2^-28 to 1
};

class Arrays {
 public:
  explicit Arrays(const Shape& shape) : shape_(shape), out_(shape.input_bytes) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    const std::size_t size = size_of(shape.dtype);
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      inputs_.emplace_back(shape.input_bytes);
      for (std::size_t i = 0; i < count(); ++i) {
        const double value =
            shape.spread ? std::ldexp(normal(random), -static_cast<int>(random() % 29)) : normal(random);
        const auto single = static_cast<float>(value);
        std::byte* const at = inputs_.back().data() + i * size;
        if (shape.dtype == DType::float64) {
          std::memcpy(at, &value, size);
        } else if (shape.dtype == DType::float32) {
          std::memcpy(at, &single, size);
        } else {
          kernels::convert(DType::float32, shape.dtype, &single, at, 1);
        }
      }
      pointers_.push_back(inputs_.back().data());
    }
  }
  [[nodiscard]] std::size_t count() const { return shape_.input_bytes / size_of(shape_.dtype); }
  [[nodiscard]] std::uint32_t divisor() const { return shape_.average ? static_cast<std::uint32_t>(shape_.inputs) : 1; }
  void sum() const { kernels::exact_sum(shape_.dtype, pointers_, out_.data(), count(), divisor()); }
  void reduce() const {
    kernels::reduce(shape_.dtype, shape_.average ? ReduceOp::avg : ReduceOp::sum, pointers_, out_.data(), count(),
                    divisor());
  }
  [[nodiscard]] bool sum_is_right() const {
    sum();
    const std::size_t part = std::min<std::size_t>(count(), 4099);
    std::vector<std::byte> expected(part * size_of(shape_.dtype));
    kernels::reference::exact_sum(shape_.dtype, pointers_, expected.data(), 0, part, divisor());
    return std::memcmp(expected.data(), out_.data(), expected.size()) == 0;
  }

 private:
  Shape shape_;
  std::vector<HugeArray> inputs_;
  HugeArray out_;
  std::vector<const void*> pointers_;
};

void exact_benchmark(benchmark::State& state, const Shape& shape) {
  const Arrays arrays(shape);
  if (!arrays.sum_is_right()) return state.SkipWithError("exact_sum differs from the reference");
  const std::size_t read_bytes = shape.inputs * shape.input_bytes;
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{16} << 20) / read_bytes);
  std::vector<double> exact_rate, reduce_rate, of_reduce;
  const auto rate = [&](double seconds) { return static_cast<double>(read_bytes) / seconds * 1e-9; };
  for (auto iteration : state) {
    const double seconds = seconds_per_call(calls, [&] { arrays.sum(); });
    state.SetIterationTime(seconds);
    exact_rate.push_back(rate(seconds));
    reduce_rate.push_back(rate(seconds_per_call(calls, [&] { arrays.reduce(); })));
    of_reduce.push_back(exact_rate.back() / reduce_rate.back());
  }
  state.counters["GB/s"] = median(exact_rate);
  state.counters["reduce"] = median(reduce_rate);
  state.counters["of_reduce"] = median(of_reduce);
}

}  // namespace

void register_exact_benchmarks() {
  constexpr DType kTypes[] = {DType::float32, DType::bfloat16, DType::float16, DType::float64, DType::float8_e4m3};
  for (const std::size_t bytes : {std::size_t{32} << 10, std::size_t{16} << 20}) {
    for (const DType dtype : kTypes) {
      for (const std::size_t inputs : {2U, 4U, 8U}) {
        for (const auto& [average, spread] : {std::pair{false, false}, {true, false}, {false, true}}) {
          const Shape shape{dtype, inputs, bytes, average, spread};
          const std::string name = std::string(spread ? "exact_spread/" : "exact/") + std::to_string(bytes >> 10U) +
                                   "KiB/" + std::string(to_string(dtype)) + "/" + (average ? "avg" : "sum") +
                                   "/K=" + std::to_string(inputs);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [shape](benchmark::State& state) { exact_benchmark(state, shape); })
              ->UseManualTime()
              ->Iterations(9)
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

}  // namespace tributary::bench

// Measures the forms of exact sums (tributary/kernels/partial_sum.h): a leader makes one from its ranks' values, an
// aggregator adds forms, and the root rounds their sum. Inputs are normally distributed. A rate counts the bytes of the
// values for which the inputs stand, on one core, in GB/s (1e9), as a median: each element of each float32 input counts
// 4 bytes, however long its form is. element: the bytes of the made form for each of its elements.
#include "bench/kernels/forms_bench.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/kernels/timing.h"
#include "tributary/kernels/convert.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::bench {
namespace {

enum class Step { make, add, round };

struct Shape {
  DType dtype;
  std::size_t inputs;
  Step step;
};

constexpr std::size_t kElements = 8192;  // as many as a segment may have: all inputs stay in the cache

class Forms {
 public:
  explicit Forms(const Shape& shape) : shape_(shape), out_(form_bytes_max(shape.dtype, kElements)) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      values_.emplace_back(kElements * size_of(shape.dtype));
      for (std::size_t i = 0; i < kElements; ++i) put(values_.back().data(), i, normal(random));
      if (shape.step == Step::make) {
        inputs_.push_back({.bytes = values_.back()});
        continue;
      }
      const kernels::PartialInput one{.bytes = values_.back()};
      forms_.emplace_back(form_bytes_max(shape.dtype, kElements));
      forms_.back().resize(kernels::add_partial_sums(shape.dtype, {&one, 1}, kElements, forms_.back()));
    }
    for (const auto& form : forms_) inputs_.push_back({.bytes = form, .is_form = true});
  }
  std::size_t run() {
    if (shape_.step != Step::round) return kernels::add_partial_sums(shape_.dtype, inputs_, kElements, out_);
    kernels::round_partial_sums(shape_.dtype, inputs_, out_.data(), kElements, 1);
    return kElements * size_of(shape_.dtype);
  }

 private:
  void put(std::byte* out, std::size_t i, double value) const {
    const std::size_t size = size_of(shape_.dtype);
    const auto single = static_cast<float>(value);
    if (shape_.dtype == DType::float64) {
      std::memcpy(out + i * size, &value, size);
    } else if (shape_.dtype == DType::float32) {
      std::memcpy(out + i * size, &single, size);
    } else {
      kernels::convert(DType::float32, shape_.dtype, &single, out + i * size, 1);
    }
  }

  Shape shape_;
  std::vector<std::vector<std::byte>> values_, forms_;
  std::vector<kernels::PartialInput> inputs_;
  std::vector<std::byte> out_;
};

void forms_benchmark(benchmark::State& state, const Shape& shape) {
  Forms forms(shape);
  const std::size_t stands_for = shape.inputs * kElements * size_of(shape.dtype);
  std::vector<double> rates;
  std::size_t made = forms.run();
  for (auto iteration : state) {
    const double seconds = seconds_per_call(50, [&] { made = forms.run(); });
    state.SetIterationTime(seconds);
    rates.push_back(static_cast<double>(stands_for) / seconds * 1e-9);
  }
  state.counters["GB/s"] = median(rates);
  state.counters["element"] = static_cast<double>(made) / kElements;
}

}  // namespace

void register_forms_benchmarks() {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
    for (const auto& [step, name] : {std::pair{Step::make, "make"}, {Step::add, "add"}, {Step::round, "round"}}) {
      for (const std::size_t inputs : {2U, 4U, 8U}) {
        const Shape shape{dtype, inputs, step};
        const std::string title =
            std::string("forms/") + name + "/" + std::string(to_string(dtype)) + "/K=" + std::to_string(inputs);
        benchmark::RegisterBenchmark(title.c_str(), [shape](benchmark::State& state) { forms_benchmark(state, shape); })
            ->UseManualTime()
            ->Iterations(9)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace tributary::bench

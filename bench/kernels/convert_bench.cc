// Measures kernels::convert and its companions beside the machine's rate for equally many bytes read and written and,
// for the float formats, beside a plain loop. All take turns in every round.
//
// Rates are bytes read and written per second by one core, in GB/s (1e9); each is the median of its rounds. of_machine
// and of_plain are the medians of the rounds' ratios.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/kernels/convert_bench.h"
#include "bench/kernels/huge_array.h"
#include "bench/kernels/memory_probe.h"
#include "bench/kernels/plain_loop.h"
#include "bench/kernels/timing.h"
#include "kernels/reference/convert.h"
#include "tributary/kernels/convert.h"

namespace tributary::bench {
namespace {

constexpr std::size_t kScaleBlock = 128;

enum class Direction : std::uint8_t { narrow, widen, accumulate };

struct ConvertCase {
  Direction direction;
  DType small;         // the smaller format; int8 means quantized, with scales
  std::size_t floats;  // number of elements, a multiple of 1024
};

/// Runs one case on arrays that it owns.
class Converter {
 public:
  explicit Converter(ConvertCase the_case)
      : case_(the_case), floats_(the_case.floats * sizeof(float)), small_(the_case.floats * size_of(the_case.small)) {
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < case_.floats; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const float value = static_cast<float>(state >> 40) * 0x1p-24F + 0.25F;
      std::memcpy(floats_.data() + i * sizeof(float), &value, sizeof(value));
    }
    scales_.resize(kernels::scales_count(case_.floats, kScaleBlock));
    narrow();  // makes the input of widen()
  }

  [[nodiscard]] bool is_right() {
    constexpr std::size_t kCompared = 1024;
    const std::size_t size = size_of(case_.small);
    if (case_.direction == Direction::narrow && case_.small != DType::int8) {
      std::vector<std::byte> expected(kCompared * size);
      kernels::reference::convert(DType::float32, case_.small, floats_.data(), expected.data(), kCompared);
      run();
      return std::memcmp(expected.data(), small_.data(), expected.size()) == 0;
    }
    std::vector<float> expected(kCompared);
    std::memcpy(expected.data(), floats_.data(), kCompared * sizeof(float));
    const auto* const steps = reinterpret_cast<const std::int8_t*>(small_.data());
    if (case_.direction == Direction::narrow) {
      std::vector<std::int8_t> expected_steps(kCompared);
      std::vector<float> scales(kCompared / kScaleBlock);
      kernels::reference::quantize(expected.data(), expected_steps.data(), scales.data(), kCompared, kScaleBlock);
      run();
      return std::memcmp(expected_steps.data(), small_.data(), kCompared) == 0;
    }
    const bool adds = case_.direction == Direction::accumulate;
    if (case_.small == DType::int8) {
      adds ? kernels::reference::dequantize_accumulate(steps, scales_.data(), expected.data(), kCompared, kScaleBlock)
           : kernels::reference::dequantize(steps, scales_.data(), expected.data(), kCompared, kScaleBlock);
    } else {
      adds ? kernels::reference::convert_accumulate(case_.small, small_.data(), expected.data(), kCompared)
           : kernels::reference::convert(case_.small, DType::float32, small_.data(), expected.data(), kCompared);
    }
    run();
    const void* const wanted = expected.data();  // compare bits: 0 and -0 differ
    return std::memcmp(wanted, static_cast<const void*>(floats_.data()), kCompared * sizeof(float)) == 0;
  }

  void run() {
    auto* const floats = reinterpret_cast<float*>(floats_.data());
    const auto* const steps = reinterpret_cast<const std::int8_t*>(small_.data());
    const bool quantized = case_.small == DType::int8;
    switch (case_.direction) {
      case Direction::narrow:
        return narrow();
      case Direction::widen:
        return quantized ? kernels::dequantize(steps, scales_.data(), floats, case_.floats, kScaleBlock)
                         : kernels::convert(case_.small, DType::float32, small_.data(), floats, case_.floats);
      case Direction::accumulate:
        return quantized ? kernels::dequantize_accumulate(steps, scales_.data(), floats, case_.floats, kScaleBlock)
                         : kernels::convert_accumulate(case_.small, small_.data(), floats, case_.floats);
    }
  }

  [[nodiscard]] PlainConvert plain() const {
    if (case_.direction == Direction::narrow) return plain_narrow(case_.small);
    return plain_widen(case_.small, case_.direction == Direction::accumulate);
  }
  [[nodiscard]] ConvertShape shape() const {
    const std::size_t size = size_of(case_.small);
    if (case_.direction == Direction::narrow) return {.read = 4, .written = size, .reads_out = false};
    return {.read = size, .written = 4, .reads_out = case_.direction == Direction::accumulate};
  }
  [[nodiscard]] std::byte* in() const { return case_.direction == Direction::narrow ? floats_.data() : small_.data(); }
  [[nodiscard]] std::byte* out() const { return case_.direction == Direction::narrow ? small_.data() : floats_.data(); }

 private:
  void narrow() {
    const auto* const floats = reinterpret_cast<const float*>(floats_.data());
    if (case_.small == DType::int8)
      kernels::quantize(floats, reinterpret_cast<std::int8_t*>(small_.data()), scales_.data(), case_.floats,
                        kScaleBlock);
    else
      kernels::convert(DType::float32, case_.small, floats, small_.data(), case_.floats);
  }

  ConvertCase case_;
  HugeArray floats_, small_;
  std::vector<float> scales_;
};

void convert_benchmark(benchmark::State& state, ConvertCase the_case) {
  Converter converter(the_case);
  if (!converter.is_right()) return state.SkipWithError("the conversion differs from the reference");

  const ConvertShape shape = converter.shape();
  const std::size_t groups = the_case.floats / 64;  // each has shape.read and shape.written blocks of 64 bytes
  const std::size_t moved = groups * 64 * (shape.read + shape.written * (shape.reads_out ? 2 : 1));
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{16} << 20) / moved);
  const PlainConvert plain = converter.plain();
  // An accumulator must not grow without limit, so probes and plain loops write to other arrays. Each has its own
  // array; otherwise the next loop would find the array's data in the last-level cache.
  const HugeArray probed(groups * 64 * shape.written), looped(groups * 64 * shape.written);

  const ConvertProbe* best = nullptr;
  double best_seconds = 0;
  for (const ConvertProbe& probe : convert_probes(shape)) {
    std::vector<double> samples;
    for (int round = 0; round < 7; ++round)
      samples.push_back(seconds_per_call(calls, [&] { probe.run(converter.in(), probed.data(), groups); }));
    if (best == nullptr || median(samples) < best_seconds) {
      best = &probe;
      best_seconds = median(samples);
    }
  }

  std::vector<double> rates, machine_rates, plain_rates, of_machine, of_plain;
  const auto rate = [&](double seconds) { return static_cast<double>(moved) / seconds * 1e-9; };
  for (auto iteration : state) {
    const double seconds = seconds_per_call(calls, [&] { converter.run(); });
    state.SetIterationTime(seconds);
    rates.push_back(rate(seconds));
    machine_rates.push_back(rate(seconds_per_call(calls, [&] { best->run(converter.in(), probed.data(), groups); })));
    of_machine.push_back(rates.back() / machine_rates.back());
    if (plain == nullptr) continue;
    plain_rates.push_back(
        rate(seconds_per_call(calls, [&] { plain(converter.in(), looped.data(), the_case.floats); })));
    of_plain.push_back(rates.back() / plain_rates.back());
  }
  state.counters["GB/s"] = median(rates);
  state.counters["machine"] = median(machine_rates);
  state.counters["of_machine"] = median(of_machine);
  if (plain != nullptr) {
    state.counters["plain"] = median(plain_rates);
    state.counters["of_plain"] = median(of_plain);
  }
  state.SetLabel(std::string(best->name));
}

std::string name_of(ConvertCase the_case) {
  std::string small = the_case.small == DType::int8 ? "int8_blocks" : std::string(to_string(the_case.small));
  switch (the_case.direction) {
    case Direction::narrow:
      return "float32_to_" + small;
    case Direction::widen:
      return small + "_to_float32";
    case Direction::accumulate:
      return "accumulate_" + small;
  }
  return small;
}

}  // namespace

void register_convert_benchmarks() {
  struct Place {
    const char* name;
    std::size_t floats;
    int rounds;
  };
  for (const Place& place : {Place{"64MiB", std::size_t{16} << 20, 15}, Place{"128KiB", std::size_t{32} << 10, 61}}) {
    for (const DType small : {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2, DType::int8}) {
      for (const Direction direction : {Direction::narrow, Direction::widen, Direction::accumulate}) {
        const ConvertCase the_case{direction, small, place.floats};
        const std::string name = std::string("convert/") + place.name + "/" + name_of(the_case);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [the_case](benchmark::State& state) { convert_benchmark(state, the_case); })
            ->UseManualTime()
            ->Iterations(place.rounds)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace tributary::bench

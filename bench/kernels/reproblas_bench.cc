// Measures exact sums beside ReproBLAS (Demmel, Ahrens, Nguyen) and a rounded sum. All take turns in every round.
//
//   accumulate   the values of K ranks become one form; in ReproBLAS each element becomes a binned number of fold 3,
//                by one update with the greatest of its values, K deposits and one renormalization
//   merge        the forms of K parts become one form; in ReproBLAS binned_sbsbaddv() or binned_dbdbaddv()
//   round        a form becomes values; in ReproBLAS binned_ssbconv() or binned_ddbconv()
//   sum          the values of K ranks become rounded sums at once: exact_sum() beside reduce(), and beside
//                accumulate and round of ReproBLAS
//   vector       exact_sum() beside ReproBLAS' sum of all elements of a vector, its own use
//
// Inputs are normally distributed. Rates are bytes of values that the inputs stand for, per second by one core, in GB/s
// (1e9), as medians; of_reproblas and of_reduce are the medians of the rounds' ratios. Each step is checked before it
// is timed.
#include <benchmark/benchmark.h>
#include <complex.h>  // before reproBLAS.h, which includes it

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

extern "C" {
#include <binned.h>
#include <reproBLAS.h>
}

#include "bench/kernels/huge_array.h"
#include "bench/kernels/timing.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/kernels/reduce.h"

namespace tributary::bench {
namespace {

constexpr int kFold = 3;                // ReproBLAS' own choice
constexpr std::size_t kSegment = 8192;  // elements of a form, as a segment has
constexpr std::size_t kInCache = 8192;  // elements of an input
constexpr std::size_t kOutside = 1 << 21;

enum class Step { accumulate, merge, round, sum, vector };

template <class Float>
struct Binned;
template <>
struct Binned<float> {
  static constexpr DType kDType = DType::float32;
  static int numbers() { return binned_sbnum(kFold); }
  static void set_zero(float* to) { binned_sbsetzero(kFold, to); }
  static void update(float most, float* to) { binned_sbsupdate(kFold, most, to); }
  static void deposit(float value, float* to) { binned_sbsdeposit(kFold, value, to); }
  static void renormalize(float* to) { binned_sbrenorm(kFold, to); }
  static void add(int count, const float* from, float* to) { binned_sbsbaddv(kFold, count, from, 1, to, 1); }
  static float rounded(const float* from) { return binned_ssbconv(kFold, from); }
  static float sum(int count, const float* from) { return reproBLAS_rssum(kFold, count, from, 1); }
};
template <>
struct Binned<double> {
  static constexpr DType kDType = DType::float64;
  static int numbers() { return binned_dbnum(kFold); }
  static void set_zero(double* to) { binned_dbsetzero(kFold, to); }
  static void update(double most, double* to) { binned_dbdupdate(kFold, most, to); }
  static void deposit(double value, double* to) { binned_dbddeposit(kFold, value, to); }
  static void renormalize(double* to) { binned_dbrenorm(kFold, to); }
  static void add(int count, const double* from, double* to) { binned_dbdbaddv(kFold, count, from, 1, to, 1); }
  static double rounded(const double* from) { return binned_ddbconv(kFold, from); }
  static double sum(int count, const double* from) { return reproBLAS_rdsum(kFold, count, from, 1); }
};

/// The inputs of both libraries, and places for their results.
template <class Float>
class Arrays {
  using B = Binned<Float>;

 public:
  Arrays(std::size_t inputs, std::size_t count)
      : inputs_(inputs),
        count_(count),
        out_(count * sizeof(Float)),
        binned_out_(binned_bytes()),
        form_bytes_(count / kSegment),
        of_vectors_(inputs) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    for (std::size_t k = 0; k < inputs; ++k) {
      values_.emplace_back(count * sizeof(Float));
      auto* const at = reinterpret_cast<Float*>(values_.back().data());
      for (std::size_t i = 0; i < count; ++i) at[i] = static_cast<Float>(normal(random));
      pointers_.push_back(values_.back().data());
    }
  }

  /// Makes the forms of each input, for merge and round.
  void make_forms() {
    for (std::size_t k = 0; k < inputs_; ++k) {
      binned_.emplace_back(binned_bytes());
      accumulate_binned({&pointers_[k], 1}, binned_numbers(binned_.back()));
      for (std::size_t first = 0; first < count_; first += kSegment) {
        std::vector<std::byte> form(form_bytes_max(B::kDType, kSegment));
        const kernels::PartialInput one = values_at(k, first);
        form.resize(kernels::add_partial_sums(B::kDType, {&one, 1}, kSegment, form));
        form.shrink_to_fit();
        forms_.push_back(std::move(form));
      }
    }
  }

  void accumulate() {
    each_segment([this](std::size_t first) {
      std::vector<kernels::PartialInput>& inputs = of_segment_;
      inputs.clear();
      for (std::size_t k = 0; k < inputs_; ++k) inputs.push_back(values_at(k, first));
      write_form(inputs, first);
    });
  }
  void merge() {
    each_segment([this](std::size_t first) { write_form(forms_at(first, inputs_), first); });
  }
  void round() {
    each_segment([this](std::size_t first) {
      kernels::round_partial_sums(B::kDType, forms_at(first, 1), out_.data() + first * sizeof(Float), kSegment, 1);
    });
  }
  void sum() { kernels::exact_sum(B::kDType, pointers_, out_.data(), count_, 1); }
  void reduce() { kernels::reduce(B::kDType, ReduceOp::sum, pointers_, out_.data(), count_, 1); }

  void accumulate_binned() { accumulate_binned(pointers_, binned_numbers(binned_out_)); }
  void merge_binned() {
    std::memcpy(binned_out_.data(), binned_[0].data(), binned_bytes());
    for (std::size_t k = 1; k < inputs_; ++k)
      B::add(static_cast<int>(count_), binned_numbers(binned_[k]), binned_numbers(binned_out_));
  }
  void round_binned() { round_binned(binned_numbers(binned_[0])); }
  void sum_binned() {
    const auto numbers = static_cast<std::size_t>(B::numbers());
    Float binned[2 * kFold];
    auto* const out = reinterpret_cast<Float*>(out_.data());
    if (numbers > std::size(binned)) std::abort();
    for (std::size_t i = 0; i < count_; ++i) {
      accumulate_element(pointers_, i, binned);
      out[i] = B::rounded(binned);
    }
  }
  void sum_vectors() {
    for (std::size_t k = 0; k < inputs_; ++k)
      of_vectors_[k] = B::sum(static_cast<int>(count_), static_cast<const Float*>(pointers_[k]));
  }

  /// Returns whether the results of a step are right. Ours must be the exact sums; those of ReproBLAS, and of reduce(),
  /// may differ by their errors. merge and round need make_forms() before.
  [[nodiscard]] bool results_are_right(Step step) {
    const std::span<const void* const> summed = step == Step::round ? std::span(pointers_).first(1) : pointers_;
    std::vector<Float> want(count_);
    kernels::reference::exact_sum(B::kDType, summed, want.data(), 0, count_, 1);
    run_ours(step);
    if (std::memcmp(want.data(), out_.data(), count_ * sizeof(Float)) != 0) return false;
    std::memset(out_.data(), 0xFF, count_ * sizeof(Float));  // NaN
    run_theirs(step);
    if (!are_near(want)) return false;
    reduce();
    return step == Step::round || are_near(want);
  }
  [[nodiscard]] std::size_t value_bytes() const { return inputs_ * count_ * sizeof(Float); }

 private:
  [[nodiscard]] std::size_t binned_bytes() const {
    return count_ * static_cast<std::size_t>(B::numbers()) * sizeof(Float);
  }
  /// Makes the values of a step's result in out_.
  void run_ours(Step step) {
    if (step == Step::round) return round();
    if (step != Step::accumulate && step != Step::merge) return sum();
    step == Step::merge ? merge() : accumulate();
    each_segment([this](std::size_t first) {
      const kernels::PartialInput form{.bytes = place_of_form(first).first(form_bytes_[first / kSegment]),
                                       .is_form = true};
      kernels::round_partial_sums(B::kDType, {&form, 1}, out_.data() + first * sizeof(Float), kSegment, 1);
    });
  }
  /// The same by ReproBLAS. Its sums of vectors are checked here, and become NaN in out_ if one is wrong.
  void run_theirs(Step step) {
    if (step == Step::round) return round_binned();
    if (step == Step::accumulate || step == Step::merge) {
      step == Step::merge ? merge_binned() : accumulate_binned();
      return round_binned(binned_numbers(binned_out_));
    }
    sum_vectors();
    if (step == Step::sum || vectors_are_right()) sum_binned();
  }
  [[nodiscard]] bool vectors_are_right() const {
    for (std::size_t k = 0; k < inputs_; ++k) {
      kernels::reference::ExactSum sum;
      const auto* const values = static_cast<const Float*>(pointers_[k]);
      for (std::size_t i = 0; i < count_; ++i) sum.add(static_cast<double>(values[i]));
      const double want = sum.take(1, kernels::reference::ExactSum::Rounding::nearest);
      const double error = std::numeric_limits<Float>::epsilon() * static_cast<double>(count_);
      if (!(std::fabs(static_cast<double>(of_vectors_[k]) - want) <= error)) return false;
    }
    return true;
  }
  /// Returns whether the values in out_ are as near as rounded sums of values of ordinary size must be.
  [[nodiscard]] bool are_near(std::span<const Float> want) const {
    constexpr Float kError = 32 * std::numeric_limits<Float>::epsilon();
    const auto* const out = reinterpret_cast<const Float*>(out_.data());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!(std::fabs(out[i] - want[i]) <= kError)) return false;  // also if it is NaN
    }
    return true;
  }
  void write_form(std::span<const kernels::PartialInput> inputs, std::size_t first) {
    form_bytes_[first / kSegment] = kernels::add_partial_sums(B::kDType, inputs, kSegment, place_of_form(first));
  }
  static Float* binned_numbers(const HugeArray& array) { return reinterpret_cast<Float*>(array.data()); }
  template <class Function>
  void each_segment(Function function) {
    for (std::size_t first = 0; first < count_; first += kSegment) function(first);
  }
  [[nodiscard]] kernels::PartialInput values_at(std::size_t k, std::size_t first) const {
    return {.bytes = {values_[k].data() + first * sizeof(Float), kSegment * sizeof(Float)}};
  }
  [[nodiscard]] std::span<const kernels::PartialInput> forms_at(std::size_t first, std::size_t inputs) {
    of_segment_.clear();
    for (std::size_t k = 0; k < inputs; ++k)
      of_segment_.push_back({.bytes = forms_[(k * count_ + first) / kSegment], .is_form = true});
    return of_segment_;
  }
  [[nodiscard]] std::span<std::byte> place_of_form(std::size_t first) {
    const std::size_t bytes = form_bytes_max(B::kDType, kSegment);
    const std::size_t segments = count_ / kSegment;
    if (form_out_.empty()) form_out_.resize(segments * bytes);
    return std::span(form_out_).subspan(first / kSegment * bytes, bytes);
  }
  void accumulate_element(std::span<const void* const> inputs, std::size_t i, Float* to) const {
    Float most = 0;
    for (const void* const input : inputs) most = std::max(most, std::fabs(static_cast<const Float*>(input)[i]));
    B::set_zero(to);
    B::update(most, to);
    for (const void* const input : inputs) B::deposit(static_cast<const Float*>(input)[i], to);
    B::renormalize(to);
  }
  void accumulate_binned(std::span<const void* const> inputs, Float* to) const {
    for (std::size_t i = 0; i < count_; ++i, to += B::numbers()) accumulate_element(inputs, i, to);
  }
  void round_binned(const Float* from) {
    auto* const out = reinterpret_cast<Float*>(out_.data());
    for (std::size_t i = 0; i < count_; ++i, from += B::numbers()) out[i] = B::rounded(from);
  }

  std::size_t inputs_, count_;
  std::vector<HugeArray> values_, binned_;
  std::vector<const void*> pointers_;
  std::vector<std::vector<std::byte>> forms_;  // of each input, the forms of its segments
  std::vector<kernels::PartialInput> of_segment_;
  std::vector<std::byte> form_out_;
  HugeArray out_, binned_out_;
  std::vector<std::size_t> form_bytes_;  // of each form in form_out_
  std::vector<Float> of_vectors_;        // ReproBLAS' sum of each input
};

template <class Float>
void run(benchmark::State& state, Step step, std::size_t inputs, std::size_t count) {
  Arrays<Float> arrays(inputs, count);
  if (step == Step::merge || step == Step::round) arrays.make_forms();
  if (!arrays.results_are_right(step)) return state.SkipWithError("a result is wrong");
  const std::size_t bytes = step == Step::round ? count * sizeof(Float) : arrays.value_bytes();
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{1} << 20) / bytes);
  const auto rate = [&](auto body) { return static_cast<double>(bytes) / seconds_per_call(calls, body) * 1e-9; };
  std::vector<double> ours, theirs, plain, of_theirs, of_plain;
  for (auto iteration : state) {
    state.SetIterationTime(1e-3);
    ours.push_back(rate([&] {
      step == Step::accumulate ? arrays.accumulate()
      : step == Step::merge    ? arrays.merge()
      : step == Step::round    ? arrays.round()
                               : arrays.sum();
    }));
    theirs.push_back(rate([&] {
      step == Step::accumulate ? arrays.accumulate_binned()
      : step == Step::merge    ? arrays.merge_binned()
      : step == Step::round    ? arrays.round_binned()
      : step == Step::sum      ? arrays.sum_binned()
                               : arrays.sum_vectors();
    }));
    of_theirs.push_back(ours.back() / theirs.back());
    if (step == Step::merge || step == Step::round) continue;
    plain.push_back(rate([&] { arrays.reduce(); }));
    of_plain.push_back(ours.back() / plain.back());
  }
  state.counters["GB/s"] = median(ours);
  state.counters["reproblas"] = median(theirs);
  state.counters["of_reproblas"] = median(of_theirs);
  if (plain.empty()) return;
  state.counters["reduce"] = median(plain);
  state.counters["of_reduce"] = median(of_plain);
}

void register_all() {
  constexpr std::pair<Step, const char*> kSteps[] = {{Step::accumulate, "accumulate"},
                                                     {Step::merge, "merge"},
                                                     {Step::round, "round"},
                                                     {Step::sum, "sum"},
                                                     {Step::vector, "vector"}};
  for (const auto& [place, count] : {std::pair{"cache", kInCache}, std::pair{"memory", kOutside}}) {
    for (const auto& [step, name] : kSteps) {
      for (const std::size_t inputs : {2U, 8U}) {
        if (step == Step::round && inputs != 2) continue;
        for (const bool wide : {false, true}) {
          const std::string title = std::string(name) + "/" + place + "/" + (wide ? "float64" : "float32") +
                                    "/K=" + std::to_string(step == Step::round ? 1 : inputs);
          benchmark::RegisterBenchmark(title.c_str(),
                                       [=, step = step, count = count](benchmark::State& state) {
                                         wide ? run<double>(state, step, inputs, count)
                                              : run<float>(state, step, inputs, count);
                                       })
              ->UseManualTime()
              ->Iterations(7);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) {
  tributary::bench::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

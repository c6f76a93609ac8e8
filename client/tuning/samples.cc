#include "client/tuning/samples.h"

#include <cmath>
#include <cstdint>

#include "tributary/protocol/assert.h"

namespace tributary::tuning {
namespace {

/// Three operations are enough for a decision if each takes at least this time, and the longest takes at most this
/// multiple of the shortest.
constexpr double kLongUs = 2'000;
constexpr double kAlike = 1.15;
constexpr std::size_t kSamplesAlike = 3;
/// The standard error of the median of n normal values, in distances of their quartiles divided by the root of n.
constexpr double kErrorOfMedian = 0.93;
}  // namespace

Samples::Values Samples::sorted(double Times::* of) const {
  TRIBUTARY_ASSERT(count_ > 0, "no operation was measured");
  Values values{};
  for (std::size_t i = 0; i < count_; ++i) values[i] = times_[i].*of;
  std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count_));
  return values;
}

void Samples::keep_last(std::size_t count) noexcept {
  if (count >= count_) return;
  const auto begin = times_.begin();
  std::copy(begin + static_cast<std::ptrdiff_t>(count_ - count), begin + static_cast<std::ptrdiff_t>(count_), begin);
  count_ = count;
  sum_us_ = 0;
  for (std::size_t i = 0; i < count_; ++i) sum_us_ += times_[i].whole_us;
}

void Samples::add(const Times& times) noexcept {
  if (count_ == times_.size()) keep_last(count_ - 1);
  times_[count_++] = times;
  sum_us_ += times.whole_us;
  while (count_ > Adaptation::kSamples && sum_us_ - times_[0].whole_us >= Adaptation::kEnoughUs) keep_last(count_ - 1);
}

// The last time comes first: if it is short, as in most calls, nothing else is looked at.
bool Samples::are_long() const noexcept {
  return count_ > 0 && times_[count_ - 1].whole_us > kLongUs && least() > kLongUs;
}

bool Samples::decide() const {
  if (count_ == times_.size()) return true;
  if (count_ >= Adaptation::kSamples && sum_us_ >= Adaptation::kEnoughUs) return true;
  return count_ >= kSamplesAlike && are_long() && greatest() < kAlike * least();
}

double Samples::error() const {
  const Values values = sorted(&Times::whole_us);
  const double quartiles = values[count_ * 3 / 4] - values[count_ / 4];
  return kErrorOfMedian * quartiles / std::sqrt(static_cast<double>(count_)) / values[count_ / 2];
}

std::optional<Samples::Times> OverlapMean::add(const MeasuredOperation& o, double scale) noexcept {
  if (o.latency_us <= o.time_us) clear();  // it did not overlap with the previous operation
  sum_.whole_us += o.time_us * scale;
  sum_.trees_us += o.trees_us * scale;
  sum_.ranks_us += o.ranks_us * scale;
  ++count_;
  wanted_ = std::min<std::size_t>(std::max<std::uint64_t>(wanted_, o.under_way + 1), kMost);
  TRIBUTARY_ASSERT(count_ <= kMost, "{} operations are averaged", count_);
  const bool last = o.under_way == 0;
  if (count_ < wanted_ && !last) return std::nullopt;
  if (last && gave_ && count_ < abreast_) {
    clear();
    return std::nullopt;
  }
  abreast_ = wanted_;
  const auto n = static_cast<double>(count_);
  const Samples::Times mean{sum_.whole_us / n, sum_.trees_us / n, sum_.ranks_us / n};
  clear();
  gave_ = !last;
  return mean;
}

}  // namespace tributary::tuning

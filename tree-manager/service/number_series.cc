#include "tree-manager/service/number_series.h"

#include <algorithm>

namespace tributary::manager {

void NumberSeries::note_used(std::uint64_t number) noexcept {
  last_ = std::max(last_, number);
}

void NumberSeries::note_promised(std::uint64_t number) noexcept {
  note_used(number);
  promised_ = std::max(promised_, number);
}

Result<std::uint64_t> NumberSeries::next(std::uint64_t by_clock) {
  const std::uint64_t number = std::max(last_ + 1, by_clock);
  if (number > promised_) {
    if (auto ok = promise_(number + stride_); !ok) return std::unexpected(ok.error());
    promised_ = number + stride_;
  }
  last_ = number;
  return number;
}

}  // namespace tributary::manager

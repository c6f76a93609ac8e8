#include "client/api/factors.h"

#include <string>

namespace tributary::client {

Result<int> Factors::add(const Factor& factor) {
  const std::lock_guard lock(mutex_);
  if (by_number_.size() >= kFactorsMax) {
    return fail(Errc::exhausted, "this communicator has " + std::to_string(kFactorsMax) +
                                     " ops of pre-multiplied sums: destroy some with tributary_op_destroy");
  }
  do {
    last_ = last_ % kNumbersMax + 1;
  } while (by_number_.contains(last_));
  by_number_.emplace(last_, factor);
  return last_ * kUnit;
}

std::optional<Factor> Factors::find(int op) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(op / kUnit);
  if (found == by_number_.end()) return std::nullopt;
  return found->second;
}

bool Factors::remove(int op) {
  const std::lock_guard lock(mutex_);
  return op % kUnit == 0 && by_number_.erase(op / kUnit) == 1;
}

}  // namespace tributary::client

#pragma once
// The operation that each child of a lane has come to, to say how many operations a child is behind. The numbers are the
// children's word: a child that lies makes them wrong in its own group.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {

class OperationProgress {
 public:
  explicit OperationProgress(std::uint32_t children) : next_(children) {}

  /// Notes a contribution to `operation`.
  void contributed(std::uint32_t child, std::uint64_t operation) noexcept {
    TRIBUTARY_ASSERT(child < next_.size(), "child {} of {} contributes", child, next_.size());
    if (!begun_) std::ranges::fill(next_, newest_ = operation);
    begun_ = true;
    if (operation < next_[child] || operation == UINT64_MAX) return;
    next_[child] = operation + 1;
    newest_ = std::max(newest_, next_[child]);
  }
  /// Returns how many operations some other child has contributed to, and this child has not.
  [[nodiscard]] std::uint64_t behind(std::uint32_t child) const noexcept {
    TRIBUTARY_ASSERT(child < next_.size() && next_[child] <= newest_, "child {} of {}", child, next_.size());
    return newest_ - next_[child];
  }

 private:
  std::vector<std::uint64_t> next_;  // by child: the operation after the last that it has contributed to
  std::uint64_t newest_ = 0;         // the greatest of next_
  bool begun_ = false;               // a child has contributed
};

}  // namespace tributary::aggregator

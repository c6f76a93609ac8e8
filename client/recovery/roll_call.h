#pragma once
// Remembers which ranks have answered.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::client {

class RollCall {
 public:
  explicit RollCall(std::uint32_t nranks) : answered_(nranks) {}

  /// Forgets all answers.
  void begin() {
    std::fill(answered_.begin(), answered_.end(), false);
    count_ = 0;
  }
  /// Counts each rank once. Returns whether all have answered now.
  bool count(std::uint32_t rank) {
    TRIBUTARY_ASSERT(rank < answered_.size(), "rank {} of {} answers", rank, answered_.size());
    count_ += answered_[rank] ? 0U : 1U;
    answered_[rank] = true;
    TRIBUTARY_ASSERT(count_ <= answered_.size(), "{} of {} ranks have answered", count_, answered_.size());
    return all();
  }
  [[nodiscard]] bool all() const noexcept { return count_ == answered_.size(); }
  [[nodiscard]] bool none() const noexcept { return count_ == 0; }
  [[nodiscard]] bool has(std::uint32_t rank) const { return answered_[rank]; }

 private:
  std::vector<bool> answered_;
  std::uint32_t count_ = 0;
};

}  // namespace tributary::client

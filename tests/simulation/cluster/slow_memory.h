#pragma once
// An operation's buffers like a GPU's buffers. The input arrives part by part, and a part holds garbage until it
// arrives. Results may leave as soon as the operation says that they are final, and must not change afterwards.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/operation/staged_memory.h"

namespace tributary::simulation {

class SlowMemory final : public client::StagedMemory {
 public:
  /// `input` holds the input; the constructor overwrites it, and then its parts arrive again.
  explicit SlowMemory(std::span<std::byte> input) : input_(input), original_(input.begin(), input.end()) {
    std::fill(input.begin(), input.end(), std::byte{0xEE});
  }
  void arrive(std::size_t bytes) {
    bytes = std::min(bytes, input_.size() - ready_);
    if (bytes > 0) std::memcpy(input_.data() + ready_, original_.data() + ready_, bytes);
    ready_ += bytes;
  }
  [[nodiscard]] bool input_ready(const std::byte* end) const noexcept override { return end <= input_.data() + ready_; }
  [[nodiscard]] bool input_whole() const noexcept override { return ready_ == input_.size(); }
  void result_landed(std::span<const std::byte> part) override {
    landed_.push_back({part, {part.begin(), part.end()}});
  }
  /// Returns an empty text, or a sentence about the fault that remains at the end.
  [[nodiscard]] std::string check() const {
    for (const auto& [part, taken] : landed_) {
      if (std::memcmp(part.data(), taken.data(), taken.size()) != 0) return "a result changed after it was final";
    }
    return input_whole() ? "" : "the operation ended without its input";
  }

 private:
  std::span<std::byte> input_;
  std::vector<std::byte> original_;
  std::size_t ready_ = 0;
  std::vector<std::pair<std::span<const std::byte>, std::vector<std::byte>>> landed_;
};

}  // namespace tributary::simulation

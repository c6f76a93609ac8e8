// Sums values and forms block by block; block_sum.h says how a block is summed.
#include "tributary/kernels/partial_sum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/cpu/block_sum.h"
#include "kernels/cpu/partial_form.h"
#include "tributary/kernels/exact.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

/// Reads all inputs, block by block.
class Inputs {
 public:
  Inputs(DType dtype, std::span<const PartialInput> inputs, std::size_t count) noexcept
      : inputs_(inputs), element_(size_of(dtype)), left_(count), sum_(dtype, inputs.size()) {
    TRIBUTARY_ASSERT(is_float(dtype) && !inputs.empty() && inputs.size() <= kPartialInputsMax,
                     "a partial sum of {} inputs of type {}", inputs.size(), dtype);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].is_form) readers_[k] = partial::FormReader(dtype, inputs[k].bytes);
      const std::size_t elements = inputs[k].is_form ? readers_[k].elements() : inputs[k].bytes.size() / element_;
      TRIBUTARY_ASSERT(elements == count, "input {} of a partial sum has {} elements of {}", k, elements, count);
    }
  }
  /// Returns the sum of the next block; nullptr at the end.
  [[nodiscard]] BlockSum* next() noexcept {
    const std::size_t count = std::min(left_, kFormBlockElements);
    if (count == 0) return nullptr;
    sum_.begin(count);
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].is_form) {
        sum_.take(k, inputs_[k].bytes.data() + done_ * element_);
        continue;
      }
      const auto block = readers_[k].next();
      TRIBUTARY_ASSERT(block.has_value(), "input {} of a partial sum is no form", k);
      sum_.take(k, *block);
    }
    done_ += count;
    left_ -= count;
    return &sum_;
  }
  [[nodiscard]] std::size_t done() const noexcept { return done_; }

 private:
  std::span<const PartialInput> inputs_;
  std::size_t element_, done_ = 0, left_;
  BlockSum sum_;
  std::array<partial::FormReader, kPartialInputsMax> readers_;
};

}  // namespace

std::size_t add_partial_sums(DType dtype, std::span<const PartialInput> inputs, std::size_t count,
                             std::span<std::byte> out) noexcept {
  TRIBUTARY_ASSERT(count <= UINT32_MAX, "a form of {} elements, more than 32 bits count", count);
  TRIBUTARY_ASSERT(out.size() >= form_bytes_max(dtype, count), "a form of {} elements of {} in {} bytes", count, dtype,
                   out.size());
  std::uint64_t ranks = 0;
  for (const PartialInput& input : inputs) ranks += ranks_of(dtype, input);
  // Only a process that lies sends forms of more ranks than there may be.
  const std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(count),
                                          static_cast<std::uint32_t>(std::min<std::uint64_t>(ranks, kRanksMax))};
  static_assert(sizeof(head) == kFormHeadBytes);
  std::memcpy(out.data(), head.data(), sizeof(head));
  std::byte* end = out.data() + kFormHeadBytes;
  Inputs blocks(dtype, inputs, count);
  while (BlockSum* const sum = blocks.next()) end = sum->write(end);
  return static_cast<std::size_t>(end - out.data());
}

void round_partial_sums(DType dtype, std::span<const PartialInput> inputs, void* out, std::size_t count,
                        std::uint32_t divisor) noexcept {
  TRIBUTARY_ASSERT(divisor != 0 && divisor <= kExactDivisorMax, "a sum is divided by {}", divisor);
  Inputs blocks(dtype, inputs, count);
  auto* at = static_cast<std::byte*>(out);
  while (BlockSum* const sum = blocks.next()) {
    sum->round(divisor, at);
    at = static_cast<std::byte*>(out) + blocks.done() * size_of(dtype);
  }
}

// A level makes one form of each part of the inputs; levels follow until few enough inputs are left.
std::span<const PartialInput> ManyPartialSums::condensed(DType dtype, std::span<const PartialInput> inputs,
                                                         std::size_t count) {
  std::size_t used = 0;
  while (inputs.size() > kPartialInputsMax) {
    std::vector<PartialInput> level;
    for (std::size_t begin = 0; begin < inputs.size(); begin += kPartialInputsMax) {
      if (used == forms_.size()) forms_.emplace_back();
      std::vector<std::byte>& form = forms_[used++];
      form.resize(form_bytes_max(dtype, count));
      const auto part = inputs.subspan(begin, std::min(kPartialInputsMax, inputs.size() - begin));
      level.push_back({.bytes = std::span(form).first(add_partial_sums(dtype, part, count, form)), .is_form = true});
    }
    inputs_ = std::move(level);
    inputs = inputs_;
  }
  return inputs;
}

}  // namespace tributary::kernels

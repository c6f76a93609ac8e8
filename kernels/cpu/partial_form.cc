#include "kernels/cpu/partial_form.h"

#include <algorithm>
#include <cstring>

#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"

namespace tributary::kernels {
namespace partial {
FormReader::FormReader(DType dtype, std::span<const std::byte> form) noexcept
    : range_(form_range_of(dtype)), rest_(form) {
  broken_ = form.size() < kFormHeadBytes;
  if (broken_) return;
  std::uint32_t elements = 0;
  std::memcpy(&elements, form.data(), sizeof(elements));
  std::memcpy(&ranks_, form.data() + sizeof(elements), sizeof(ranks_));
  elements_ = left_ = elements;
  broken_ = ranks_ == 0 || ranks_ > kRanksMax;
  rest_ = form.subspan(kFormHeadBytes);
}

std::optional<Block> FormReader::next() noexcept {
  if (broken_ || left_ == 0) return std::nullopt;
  broken_ = true;  // until the whole block is known to be there
  if (rest_.size() < kFormBlockHeadBytes) return std::nullopt;
  std::int16_t exponent = 0;
  std::uint16_t width = 0;
  std::memcpy(&exponent, rest_.data(), sizeof(exponent));
  std::memcpy(&width, rest_.data() + sizeof(exponent), sizeof(width));
  Block block{.count = std::min(left_, kFormBlockElements),
              .exponent = exponent,
              .width = width & static_cast<unsigned>(~kMarked),
              .marks = {},
              .numbers = {}};
  const bool in_range = block.width == 0 || (block.exponent >= range_.least &&
                                             block.exponent + 8 * static_cast<int>(block.width) <= range_.end());
  const std::size_t marks = (width & kMarked) != 0 ? block.count : 0;
  const std::size_t bytes = kFormBlockHeadBytes + marks + block.count * block.width;
  if (!in_range || rest_.size() < bytes) return std::nullopt;
  block.marks = rest_.subspan(kFormBlockHeadBytes, marks);
  block.numbers = rest_.subspan(kFormBlockHeadBytes + marks, block.count * block.width);
  if (std::ranges::any_of(block.marks, [](std::byte mark) {
        return static_cast<std::uint8_t>(mark) > reference::ExactSum::kAllMarks;
      })) {
    return std::nullopt;
  }
  rest_ = rest_.subspan(bytes);
  left_ -= block.count;
  broken_ = false;
  return block;
}

}  // namespace partial

std::optional<std::size_t> partial_sum_elements(DType dtype, std::span<const std::byte> bytes) noexcept {
  partial::FormReader reader(dtype, bytes);
  while (reader.next()) {
  }
  return reader.complete() ? std::optional(reader.elements()) : std::nullopt;
}

std::uint32_t ranks_of(DType dtype, const PartialInput& input) noexcept {
  return input.is_form ? partial::FormReader(dtype, input.bytes).ranks() : 1;
}

}  // namespace tributary::kernels

#pragma once
// Reads the forms of partial_sum.h. The bytes may come from any process, so each block is checked before it is used.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels::partial {

inline constexpr std::uint16_t kMarked = 1U << 15U;  // a bit of the width: a byte of marks for each element follows

struct Block {
  std::size_t count = 0;
  int exponent = 0;
  unsigned width = 0;
  std::span<const std::byte> marks;    // of ExactSum::Marks, one byte for each element; empty: no marks
  std::span<const std::byte> numbers;  // `width` bytes for each element
};

class FormReader {
 public:
  FormReader() noexcept = default;
  FormReader(DType dtype, std::span<const std::byte> form) noexcept;
  /// Returns the number of elements that the form says it has.
  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  /// Returns the number of ranks whose values the form says it sums.
  [[nodiscard]] std::uint32_t ranks() const noexcept { return ranks_; }
  /// Returns the next block; nullopt at the end, and if the rest is no block.
  [[nodiscard]] std::optional<Block> next() noexcept;
  /// Returns whether all blocks were read, and nothing follows them.
  [[nodiscard]] bool complete() const noexcept { return left_ == 0 && rest_.empty() && !broken_; }

 private:
  FormRange range_;
  std::span<const std::byte> rest_;
  std::size_t elements_ = 0;
  std::uint32_t ranks_ = 0;
  std::size_t left_ = 0;
  bool broken_ = false;
};

}  // namespace tributary::kernels::partial

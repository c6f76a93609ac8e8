#pragma once
// Inputs that reach every corner of a dtype, arrays at any alignment with guards at both ends, and comparison bit by
// bit.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::kernels::test {

/// Returns `count` elements: a third of them special (zeros, subnormals, infinities, NaN, extremes), a third of
/// ordinary size, the rest any bits.
[[nodiscard]] std::vector<std::byte> values(DType dtype, std::size_t count, std::mt19937_64& random);

/// Returns elements of ordinary size, without special ones.
[[nodiscard]] std::vector<std::byte> plain_values(DType dtype, std::size_t count, std::mt19937_64& random);

/// Returns the bits of element `index`, zero-extended.
[[nodiscard]] std::uint64_t bits_at(DType dtype, const std::byte* array, std::size_t index);

[[nodiscard]] bool is_nan(DType dtype, std::uint64_t bits);
[[nodiscard]] bool is_quiet_nan(DType dtype, std::uint64_t bits);

/// Returns an empty text if the arrays agree: they have equal bits, or any quiet NaN where a NaN is expected. Else a
/// sentence with the first difference.
[[nodiscard]] std::string difference(DType dtype, const std::byte* expected, const std::byte* actual,
                                     std::size_t count);

/// Bytes at a chosen distance from a 64-byte boundary, between guards that reveal writes outside of them.
class GuardedArray {
 public:
  GuardedArray(std::size_t bytes, std::size_t misalignment);

  [[nodiscard]] std::byte* data() noexcept { return storage_.data() + start_; }
  [[nodiscard]] const std::byte* data() const noexcept { return storage_.data() + start_; }
  void assign(const std::vector<std::byte>& content);
  [[nodiscard]] bool guards_intact() const;

 private:
  std::vector<std::byte> storage_;
  std::size_t start_;
  std::size_t bytes_;
};

}  // namespace tributary::kernels::test

#pragma once
// Reads the input as a list of decisions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::fuzz {

/// Reads the input; returns zeros after its end.
class Script {
 public:
  explicit Script(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool over() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  /// Reads a number, lowest byte first.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << 8 * i;
    return value;
  }
  std::span<const std::byte> take(std::size_t wanted) {
    const auto taken = bytes_.first(std::min(wanted, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return std::as_bytes(taken);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tributary::fuzz

#pragma once
// The numbers of the packets that have come: the latest number, and a bit for each of the 64 numbers before it.
#include <cstdint>

namespace tributary::transport::packet {

class ReceivedNumbers {
 public:
  /// True if no packet has come yet.
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  [[nodiscard]] std::uint64_t largest() const noexcept { return largest_; }
  [[nodiscard]] std::uint64_t bitmap() const noexcept { return bitmap_; }
  /// True if the number is too old for the bitmap. The stream then knows whether the packet's bytes have come.
  [[nodiscard]] bool forgot(std::uint64_t number) const noexcept { return !empty_ && number + 64 < largest_; }
  /// True if the packet has come before; false for a number for which forgot() is true.
  [[nodiscard]] bool has(std::uint64_t number) const noexcept {
    if (empty_ || number > largest_) return false;
    if (number == largest_) return true;
    const std::uint64_t back = largest_ - number - 1;
    return back < 64 && (bitmap_ >> back & 1) != 0;
  }
  /// True if no packet is known to be missing between the latest number and `number`.
  [[nodiscard]] bool follows(std::uint64_t number) const noexcept { return empty_ || number == largest_ + 1; }
  void note(std::uint64_t number) noexcept {
    if (empty_) {
      empty_ = false;
      largest_ = number;
      return;
    }
    if (number > largest_) {
      const std::uint64_t ahead = number - largest_;
      bitmap_ =
          ahead < 64 ? bitmap_ << ahead | std::uint64_t{1} << (ahead - 1) : (ahead == 64 ? std::uint64_t{1} << 63 : 0);
      largest_ = number;
    } else if (number < largest_ && largest_ - number <= 64) {
      bitmap_ |= std::uint64_t{1} << (largest_ - number - 1);
    }
  }

 private:
  std::uint64_t largest_ = 0;
  std::uint64_t bitmap_ = 0;
  bool empty_ = true;
};

}  // namespace tributary::transport::packet

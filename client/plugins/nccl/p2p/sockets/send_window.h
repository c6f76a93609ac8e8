#pragma once
// A bound on the bytes of a socket that are under way at a time.
//
// Without a bound the system queues megabytes at both ends. Those bytes have left the processor's caches when they are
// copied the second time; on links as fast as memory this costs up to half of the rate. So a sender fills a window, and
// goes on as the other end confirms. A fixed window would slow down long links, so it grows with the link's shortest
// round trip: it holds what a flow of 32 GB/s, more than a processor copies, has under way in that time. From a round
// trip of some 200 us on it is larger than a system's queue, and bounds nothing.
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace tributary::nccl {

class SendWindow {
 public:
  static constexpr std::size_t kBytesMin = std::size_t{768} << 10;
  static constexpr std::size_t kBytesPerMicrosecond = 32'000;
  static constexpr std::size_t kBytesBetweenQuestions = std::size_t{8} << 20;

  /// Returns true if `bytes` fit even if no byte was confirmed since the system was last asked.
  [[nodiscard]] bool surely_has(std::size_t bytes) const noexcept { return under_way_most_ + bytes <= bytes_; }
  void note_under_way(std::size_t bytes) noexcept { under_way_most_ = bytes; }
  /// The number of bytes that may be written now.
  [[nodiscard]] std::size_t room() const noexcept { return bytes_ - std::min(bytes_, under_way_most_); }
  void note_written(std::size_t bytes) noexcept {
    under_way_most_ += bytes;
    unasked_ += bytes;
  }
  /// Returns true if the caller should ask for the round trip: at the beginning, and every few megabytes, because the
  /// shortest one may be still to come.
  [[nodiscard]] bool wants_round_trip() const noexcept { return unasked_ >= kBytesBetweenQuestions; }
  void note_round_trip(std::chrono::microseconds shortest) noexcept {
    const auto microseconds = static_cast<std::size_t>(std::clamp<std::int64_t>(shortest.count(), 0, 1'000'000));
    bytes_ = std::max(kBytesMin, microseconds * kBytesPerMicrosecond);
    unasked_ = 0;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = kBytesMin;
  std::size_t under_way_most_ = 0;
  std::size_t unasked_ = kBytesBetweenQuestions;  // bytes written since the round trip was last asked for
};

}  // namespace tributary::nccl

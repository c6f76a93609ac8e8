#pragma once
// A bound on the bytes that a socket has sent and the other end has not confirmed.
//
// Without a bound the system queues megabytes at both ends. These bytes have left the processor's caches before the
// second copy reads them. On links as fast as memory this costs up to half of the rate. So a sender fills a window, and
// continues as the other end confirms. A fixed window would slow down long links, so the window grows with the link's
// shortest round trip: it holds the bytes that a flow of 32 GB/s sends in that time. A processor copies more slowly
// than 32 GB/s. If the round trip is longer than about 200 us, the window is larger than a system's queue, and bounds
// nothing.
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace tributary::nccl {

class SendWindow {
 public:
  static constexpr std::size_t kBytesMin = std::size_t{768} << 10;
  static constexpr std::size_t kBytesPerMicrosecond = 32'000;
  static constexpr std::size_t kBytesBetweenQuestions = std::size_t{8} << 20;

  /// Returns true if `bytes` fit even if the other end has confirmed nothing since the system was last asked.
  [[nodiscard]] bool surely_has(std::size_t bytes) const noexcept { return under_way_most_ + bytes <= bytes_; }
  void note_under_way(std::size_t bytes) noexcept { under_way_most_ = bytes; }
  /// Returns the number of bytes that may be written now.
  [[nodiscard]] std::size_t room() const noexcept { return bytes_ - std::min(bytes_, under_way_most_); }
  void note_written(std::size_t bytes) noexcept {
    under_way_most_ += bytes;
    unasked_ += bytes;
  }
  /// Returns true if the caller should ask for the round trip: at the beginning, and every few megabytes, because a
  /// shorter round trip may still come.
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
  std::size_t unasked_ = kBytesBetweenQuestions;  // bytes written since the last question for the round trip
};

}  // namespace tributary::nccl

#pragma once
// The lag of each child of a lane: how long after a segment's first contribution the child's contribution came. It is a
// pure state machine: the caller gives it the times, one for each turn of its thread. It allocates only in the
// constructor; a contribution costs a few additions.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tributary::aggregator {

/// Counts of times by size; class n holds times up to upper_us(n) that are in no lower class.
struct TimeHistogram {
  static constexpr std::size_t kClasses = 11;
  /// Returns the upper bound of a class, in microseconds: 16, 64, 256 and so on. The last class has no bound.
  [[nodiscard]] static constexpr std::uint64_t upper_us(std::size_t number) noexcept { return 16ULL << 2 * number; }
  [[nodiscard]] static std::size_t class_of(std::chrono::nanoseconds time) noexcept;
  void add(std::chrono::nanoseconds time) noexcept {
    ++counts[class_of(time)];
    sum += time;
  }

  std::array<std::uint64_t, kClasses> counts{};
  std::chrono::nanoseconds sum{};  // the sum of all times
};

class LaneLag {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  /// The figures of one child since the lane was made.
  struct Child {
    std::uint64_t contributions = 0;
    std::uint64_t last = 0;  // segments whose last contribution came from this child
    Duration lag{};          // recent mean: each contribution counts an eighth
    Duration longest{};
  };
  /// The children that a segment waits for.
  struct Wait {
    std::uint64_t missing = 0;  // a bit for each child; 0: no segment waits
    TimePoint since{};          // time of the segment's first contribution
    TimePoint latest{};         // time of its latest contribution
  };

  /// `children`: 1 to 64. `window`: the most segments that can be incomplete at once.
  LaneLag(std::uint32_t children, std::uint32_t window);

  /// Notes a contribution that the lane has accepted, and returns its lag. `histogram` counts it.
  Duration contributed(std::uint32_t child, std::uint64_t sequence, TimePoint now, TimeHistogram& histogram) noexcept;
  /// Notes that the result of a segment goes to the children. `histogram` counts the time since the segment's first
  /// contribution. At a root it comes before contributed() of the last child.
  void answered(std::uint64_t sequence, TimePoint now, TimeHistogram& histogram) const noexcept;
  /// Returns the children that the oldest incomplete segment waits for. Takes a step for each segment of the window.
  [[nodiscard]] Wait oldest() const noexcept;
  [[nodiscard]] std::span<const Child> children() const noexcept { return children_; }

 private:
  struct Segment {
    TimePoint opened{}, latest{};
    std::uint64_t sequence = 0;
    std::uint64_t arrived = 0;  // a bit for each child; 0: the segment has not begun, or all contributions came
  };

  const std::uint64_t everyone_;
  std::vector<Child> children_;
  std::vector<Segment> segments_;  // by sequence mod window
};

}  // namespace tributary::aggregator

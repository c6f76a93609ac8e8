#pragma once
// Finds the one child of a lane for which the others wait too often. The caller finds out some 20 times a second which
// children the oldest incomplete segment waits for. So this works like a sampling profiler: the part of the looks at
// which a child was missing is the part of the time that the lane lost to it. It costs the hot path nothing.
//
// Two means are kept for each child, over a second and over 15 seconds, each as an exponential average. A child is late
// if one mean is above its limit and eight times as high as that of every other child. The second condition matters
// with two or three children: while data flow, some child is always missing, each of them in turn. A late child stays
// late until both means are low, or another child's are half as high, so that the answer does not flicker.
//
// The limit over a second is lower for a child for which the others wait again and again: some long waits for the same
// child, one soon after the other, are no chance. They are chance if other children had such waits, too: so a third mean
// counts each child's longer waits over 5 seconds, and the lower limits hold only for a child that has eight times as
// much of them as every other one. The mean over 15 seconds leaves out very short waits: in a full pipeline some child
// is always the last by less than a millisecond, often the same one, and this costs nothing.
//
// With two or three children, the limits are higher, and none of them is lower after some waits: every second wait, or
// every third one, is for the same child as the wait before. On a machine with too much work, several such waits in a
// row come every few minutes, and there is only one other child, or there are two, to compare with.
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace tributary::aggregator {

class StragglerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit StragglerWatch(std::uint32_t children) : parts_(children) {}

  /// Notes a look. `missing`: a bit for each child that the oldest incomplete segment waits for. `alone`: the time for
  /// which it has waited for these children alone.
  void look(TimePoint now, std::uint64_t missing, std::chrono::nanoseconds alone) noexcept;
  [[nodiscard]] std::optional<std::uint32_t> straggler() const noexcept { return straggler_; }
  /// Returns the part of the last seconds that the lane waited for this child, 0 to 1.
  [[nodiscard]] double part(std::uint32_t child) const noexcept;

 private:
  /// The parts of the time that the lane waited for a child, over a second and over 15 seconds.
  struct Parts {
    double soon = 0, lasting = 0;
    double longer = 0;  // over 5 seconds, and only of longer waits
    struct Waits {
      std::uint32_t count = 0;  // number of waits of this length since `soon` was low
      bool now = false;         // the last look was part of such a wait
    };
    Waits waits, long_waits;  // those of at least 0.08 s, and those of at least 0.2 s
  };
  static void note_wait(Parts::Waits& waits, bool now, bool low) noexcept;
  [[nodiscard]] double soon_limit(std::uint32_t child) const noexcept;
  [[nodiscard]] bool stands_out(std::uint32_t child, double Parts::* mean) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> find(double Parts::* mean) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> find_soon() const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> find_lasting() const noexcept;

  /// Returns true if the lane waited for some other child for half as long, or longer, by both means.
  [[nodiscard]] bool another_is_as_late(std::uint32_t child) const noexcept;

  std::vector<Parts> parts_;
  std::optional<std::uint32_t> straggler_;
  TimePoint looked_at_{};
  std::chrono::duration<double> watched_{};  // time that the looks have covered
};

}  // namespace tributary::aggregator

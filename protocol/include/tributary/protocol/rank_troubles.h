#pragma once
// The troubles that a rank finds at itself, which the processes that wait for it cannot see: its threads wait for a
// processor, its network devices count errors, or its host sends TCP segments again. A rank tells them to its
// aggregators in `ask` frames, and to rank 0 in `progress`. They only let others guess: there may be another cause,
// too, and a rank may tell anything.
//
// A rank that is stopped, or waits for a processor, cannot answer. Then two other ranks of its host, its witnesses,
// tell what they see of its process.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "tributary/protocol/late_rank.h"

namespace tributary {

struct RankTroubles {
  std::uint8_t processor_wait = 0;  // percent of the last second for which its thread was ready to run and did not run
  std::uint8_t sent_again = 0;      // percent of its host's TCP segments that were sent again
  std::uint8_t device_errors = 0;   // errors that its host's network devices counted in the last second; 100: or more
  friend bool operator==(const RankTroubles&, const RankTroubles&) = default;

  static constexpr std::uint8_t kProcessorWaitMin = 40, kSentAgainMin = 5, kDeviceErrorsMin = 3;
  /// Returns whether there is a trouble that may make the rank late.
  [[nodiscard]] bool any() const noexcept {
    return processor_wait >= kProcessorWaitMin || sent_again >= kSentAgainMin || device_errors >= kDeviceErrorsMin;
  }
};

/// The time for which a rank's word about its troubles counts.
inline constexpr std::chrono::seconds kTroublesValid{3};

/// A rank's word about itself.
struct RankWord {
  RankTroubles troubles{};
  bool idle = false;  // it has called no operation whose data or result are still under way
};

/// The look of a rank at the process of another rank of its host, which does not answer for itself.
struct Sighting {
  std::uint32_t rank = 0;           // the other rank
  bool stopped = false;             // its process is stopped
  std::uint8_t processor_wait = 0;  // percent of the last time for which one of its threads waited for a processor
  friend bool operator==(const Sighting&, const Sighting&) = default;
  /// Returns the cause of its lateness that the sighting gives; else `otherwise`.
  [[nodiscard]] constexpr LateCause cause(LateCause otherwise) const noexcept {
    if (stopped) return LateCause::silent;
    return processor_wait >= RankTroubles::kProcessorWaitMin ? LateCause::no_cpu : otherwise;
  }
};

/// The ranks of a host that look at one rank's process.
inline constexpr std::uint32_t kWitnessesMax = 2;
/// The number of times that they are asked about a rank that does not answer one question.
inline constexpr std::uint32_t kWitnessQuestionsMax = 8;
/// Returns the time from the unanswered question to the witnesses' question with this number, from 0: 0.05, 0.26,
/// 0.52, 1.04 s and so on. The first one lets them begin to look, so the second one brings the first answer.
[[nodiscard]] constexpr std::chrono::milliseconds witness_after(std::uint32_t number) noexcept {
  return number == 0 ? std::chrono::milliseconds(50) : std::chrono::milliseconds(260) * (1U << (number - 1));
}

/// The field `count` of an `alive` frame with which an aggregator wants a word from a rank, or a sighting of the rank
/// in the field `segment`. Other `alive` frames have 0 there.
inline constexpr std::uint64_t kWantsWord = 1, kWantsSighting = 2;

/// Returns the field `count` of an `ask` frame that tells a word. Other `ask` frames have 0 there.
[[nodiscard]] constexpr std::uint64_t encode(const RankWord& word) noexcept {
  return std::uint64_t{1} << 63 | std::uint64_t{word.troubles.device_errors} << 24 | std::uint64_t{word.idle} << 16 |
         std::uint64_t{word.troubles.sent_again} << 8 | word.troubles.processor_wait;
}
[[nodiscard]] constexpr bool tells_word(std::uint64_t count) noexcept {
  return count >> 63 != 0;
}
[[nodiscard]] constexpr RankWord decode_word(std::uint64_t count) noexcept {
  const auto at_most_100 = [count](unsigned shift) {
    return static_cast<std::uint8_t>(std::min<std::uint64_t>(count >> shift & 0xFF, 100));
  };
  return {
      .troubles = {.processor_wait = at_most_100(0), .sent_again = at_most_100(8), .device_errors = at_most_100(24)},
      .idle = (count >> 16 & 1U) != 0};
}

/// Returns the field `count` of an `ask` frame that tells a sighting; the field `segment` is the rank's.
[[nodiscard]] constexpr std::uint64_t encode(const Sighting& sighting) noexcept {
  return std::uint64_t{3} << 62 | std::uint64_t{sighting.stopped} << 17 | sighting.processor_wait;
}
[[nodiscard]] constexpr bool tells_sighting(std::uint64_t count) noexcept {
  return count >> 62 == 3;
}
[[nodiscard]] constexpr Sighting decode_sighting(std::uint64_t count, std::uint32_t segment) noexcept {
  return {.rank = segment,
          .stopped = (count >> 17 & 1U) != 0,
          .processor_wait = static_cast<std::uint8_t>(std::min<std::uint64_t>(count & 0xFF, 100))};
}

/// Returns the cause that the rank's own troubles give; `otherwise` if they give none. `others`: the means of the other
/// ranks. If most ranks have the same trouble, it does not tell why this one is late.
[[nodiscard]] constexpr LateCause cause_of(const RankTroubles& own, const RankTroubles& others,
                                           LateCause otherwise) noexcept {
  const auto stands_out = [](std::uint8_t value, std::uint8_t mean, std::uint8_t least) {
    return value >= least && 2U * value >= 3U * mean;
  };
  if (stands_out(own.processor_wait, others.processor_wait, RankTroubles::kProcessorWaitMin)) return LateCause::no_cpu;
  if (stands_out(own.device_errors, others.device_errors, RankTroubles::kDeviceErrorsMin))
    return LateCause::device_errors;
  if (stands_out(own.sent_again, others.sent_again, RankTroubles::kSentAgainMin)) return LateCause::lossy_link;
  return otherwise;
}

/// The means of the troubles of several ranks.
class TroublesMean {
 public:
  void add(const RankTroubles& one) noexcept {
    processor_wait_ += one.processor_wait;
    sent_again_ += one.sent_again;
    device_errors_ += one.device_errors;
    ++count_;
  }
  [[nodiscard]] RankTroubles mean() const noexcept {
    const std::uint32_t count = std::max(count_, 1U);
    return {.processor_wait = static_cast<std::uint8_t>(processor_wait_ / count),
            .sent_again = static_cast<std::uint8_t>(sent_again_ / count),
            .device_errors = static_cast<std::uint8_t>(device_errors_ / count)};
  }

 private:
  std::uint32_t processor_wait_ = 0, sent_again_ = 0, device_errors_ = 0, count_ = 0;
};

}  // namespace tributary

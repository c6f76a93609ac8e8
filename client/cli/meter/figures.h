#pragma once
// The figures of a way between two processes.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tributary::cli::meter {

struct RoundTrips {
  double least = 0, median = 0, p99 = 0;  // seconds
};
/// `seconds` has at least one time. For fewer than a hundred times, p99 is the longest time.
[[nodiscard]] RoundTrips round_trips_of(std::vector<double> seconds);

/// The value of figures that are not known. No measurement gives it.
inline constexpr double kNotKnown = -1;

/// The way from this host to another process.
struct Way {
  RoundTrips round_trips{};
  double bits_to = kNotKnown;    // bits a second to the other process, while only short answers came back
  double bits_both = kNotKnown;  // bits a second in each direction, while both directions were busy
  double lost_to = kNotKnown;    // part of the segments that were sent again, while few segments were under way
  double lost_from = kNotKnown;  // part of the segments that came after later segments, while few were under way
  double lost_full = kNotKnown;  // part of the segments that were sent again, while the link was full
  double processor = 0;          // part of a core that this process needed to send
  std::uint32_t mtu = 0;         // bytes of the longest frame that passed; 0: not known
  bool stalled = false;          // small messages pass, and large messages do not
};

/// Returns a text such as "940.0 Mbit/s".
[[nodiscard]] std::string bits_text(double bits_per_second);
/// Returns a text such as "12.5 us", "3.10 ms" or "2.0 s".
[[nodiscard]] std::string seconds_text(double seconds);
/// Returns a text such as "0.31 %".
[[nodiscard]] std::string part_text(double part);
/// Returns the time of an allreduce of `bytes` by a tree, over a link of this rate: the rank sends all bytes, and
/// receives as many at the same time.
[[nodiscard]] double all_reduce_seconds(double bytes, double bits_per_second) noexcept;

/// Returns the median of the values; of an even number of values, the greater one of the two in the middle.
[[nodiscard]] double upper_median(std::vector<double> values);

}  // namespace tributary::cli::meter

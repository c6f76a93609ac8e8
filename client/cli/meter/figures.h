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
/// Takes at least one time. p99 is the longest where there are fewer than a hundred.
[[nodiscard]] RoundTrips round_trips_of(std::vector<double> seconds);

/// A value that no measurement gives.
inline constexpr double kNotKnown = -1;

/// The way from this host to another process.
struct Way {
  RoundTrips round_trips{};
  double bits_to = kNotKnown;    // bits a second that went out while nothing but short answers came back
  double bits_both = kNotKnown;  // bits a second in each direction, while as much came back
  double lost_to = kNotKnown;    // part of the segments that were sent again, while few were under way
  double lost_from = kNotKnown;  // part of the segments that came after later ones, while few were under way
  double lost_full = kNotKnown;  // part of the segments that were sent again, while the link was full
  double processor = 0;          // part of a core that this process needed to send
  std::uint32_t mtu = 0;         // the largest frame that passed; 0: not known
  bool stalled = false;          // small messages pass, and large ones do not
};

/// "940.0 Mbit/s"
[[nodiscard]] std::string bits_text(double bits_per_second);
/// "12.5 us", "3.10 ms", "2.0 s"
[[nodiscard]] std::string seconds_text(double seconds);
/// "0.31 %"
[[nodiscard]] std::string part_text(double part);
/// Returns the time of an allreduce of `bytes` by a tree, over a link of this rate: all bytes go out, and as many come
/// back meanwhile.
[[nodiscard]] double all_reduce_seconds(double bytes, double bits_per_second) noexcept;

/// Returns the value that half of the others reach; of an even number the greater one in the middle.
[[nodiscard]] double upper_median(std::vector<double> values);

}  // namespace tributary::cli::meter

#include "client/cli/meter/figures.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::cli::meter {

RoundTrips round_trips_of(std::vector<double> seconds) {
  TRIBUTARY_ASSERT(!seconds.empty(), "no round trip was measured of {}", seconds.size());
  std::ranges::sort(seconds);
  const std::size_t last = seconds.size() - 1;
  return {.least = seconds.front(), .median = seconds[last / 2], .p99 = seconds[last - last / 100]};
}

std::string bits_text(double bits) {
  if (bits >= 1e9) return fmt::format("{:.1f} Gbit/s", bits * 1e-9);
  return bits >= 1e6 ? fmt::format("{:.1f} Mbit/s", bits * 1e-6) : fmt::format("{:.1f} kbit/s", bits * 1e-3);
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

std::string part_text(double part) {
  return fmt::format("{:.2f} %", part * 100);
}

double all_reduce_seconds(double bytes, double bits_per_second) noexcept {
  return bits_per_second > 0 ? bytes * 8 / bits_per_second : 0;
}

double upper_median(std::vector<double> values) {
  TRIBUTARY_ASSERT(!values.empty(), "the median of {} values was asked for", values.size());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tributary::cli::meter

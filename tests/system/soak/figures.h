#pragma once
// Measures the resources of a process over time, and whether they still grow.
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tributary::soak {

struct Sample {
  double seconds = 0;
  double resident_mib = 0;
  double open_files = 0;
  double threads = 0;
};

/// Reads /proc; nullopt if no such process exists.
[[nodiscard]] std::optional<Sample> sample_process(pid_t pid, double seconds);

/// A straight line through the samples, by least squares.
struct Trend {
  double mean = 0;
  double growth = 0;  // growth along the line, from the first sample to the last
};
[[nodiscard]] Trend trend_of(const std::vector<Sample>& samples, const std::function<double(const Sample&)>& figure);

}  // namespace tributary::soak

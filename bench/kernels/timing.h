#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace tributary::bench {

inline double median(std::vector<double> samples) {
  std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
  return samples[samples.size() / 2];
}

/// Returns the seconds per call of `body`, over this many calls.
template <class Body>
double seconds_per_call(std::size_t calls, Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < calls; ++i) {
    body();
    benchmark::ClobberMemory();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(calls);
}

}  // namespace tributary::bench

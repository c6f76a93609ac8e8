#pragma once
// Measures and checks one collective at one size, on every rank.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/perf/buffer.h"
#include "client/cli/perf/checked_call.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct BenchSettings {
  CallShape call;
  std::uint32_t iterations = 20;
  std::uint32_t warmup = 5;
  bool check = true;
  std::shared_ptr<PerfGpu> gpu;  // the GPU with the buffers; null: they lie in host memory
};

struct Measurement {
  double microseconds = 0;  // time of one operation: the mean over operations and ranks
  double algorithm_gbytes_per_second = 0;
  double bus_gbytes_per_second = 0;
  double largest_error = 0;            // over all ranks, in units of the last place; only if the check is exact
  std::optional<std::uint64_t> wrong;  // wrong elements over all ranks; nullopt: the results were not checked
};

struct BenchRow {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  // the call's argument
  Measurement out_of_place;
  std::optional<Measurement> in_place;  // nullopt: the collective has no in-place form
  std::uint64_t bytes_in_network = 0;   // this rank's bytes, from the library's counters
  std::uint64_t bytes_local = 0;
  std::uint64_t bytes_fallback = 0;
};

/// Converts the library's error into this program's Error: its sentence, and a code for the caller.
[[nodiscard]] Error error_of(tributary_status status, const tributary_comm* comm);

class Bench {
 public:
  /// Makes the benchmark. `bytes_max`: the largest size that will come. Errc::exhausted: there is too little memory for
  /// it.
  [[nodiscard]] static Result<Bench> create(const BenchSettings& settings, std::uint64_t bytes_max,
                                            tributary_comm* comm);
  /// Runs one size. Every rank must call it with the same size.
  [[nodiscard]] Result<BenchRow> run(std::uint64_t bytes);

 private:
  Bench(const BenchSettings& settings, tributary_comm* comm);
  [[nodiscard]] Result<Measurement> measure(const PerfCounts& counts, bool in_place);
  [[nodiscard]] Status fill(const PerfCounts& counts, bool in_place);
  [[nodiscard]] Status check(const PerfCounts& counts, bool in_place, Measurement& measurement);
  [[nodiscard]] std::uint64_t bytes_of(const PerfCounts& counts) const noexcept;
  [[nodiscard]] Status repeat(const PerfCall& call, std::uint32_t times);
  [[nodiscard]] Status conclude(Measurement& measurement, const PerfCounts& counts);
  [[nodiscard]] Result<tributary_info> info() const;

  BenchSettings settings_;
  tributary_comm* comm_;
  CheckedCall call_;
  PerfBuffer first_, second_;
};

}  // namespace tributary::cli

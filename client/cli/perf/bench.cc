#include "client/cli/perf/bench.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

using std::chrono::steady_clock;

Errc code_of(tributary_status status) {
  switch (status) {
    case TRIBUTARY_ERROR_BAD_CONFIG:
      return Errc::bad_config;
    case TRIBUTARY_ERROR_BAD_ARGUMENT:
      return Errc::bad_argument;
    case TRIBUTARY_ERROR_UNREACHABLE:
      return Errc::unreachable;
    case TRIBUTARY_ERROR_TIMED_OUT:
      return Errc::timed_out;
    case TRIBUTARY_ERROR_PEER_GONE:
      return Errc::peer_gone;
    case TRIBUTARY_ERROR_ABORTED:
      return Errc::aborted;
    default:
      return Errc::io;
  }
}

}  // namespace

Error error_of(tributary_status status, const tributary_comm* comm) {
  return {code_of(status), tributary_last_error(comm)};
}

Bench::Bench(const BenchSettings& settings, tributary_comm* comm)
    : settings_(settings), comm_(comm), call_(settings.call) {}

Result<Bench> Bench::create(const BenchSettings& settings, std::uint64_t bytes_max, tributary_comm* comm) {
  Bench bench(settings, comm);
  for (PerfBuffer* buffer : {&bench.first_, &bench.second_}) {
    auto allocated = PerfBuffer::allocate(bytes_max, settings.gpu);
    if (!allocated) return std::unexpected(allocated.error());
    *buffer = std::move(*allocated);
  }
  return bench;
}

std::uint64_t Bench::bytes_of(const PerfCounts& counts) const noexcept {
  return std::max(counts.send, counts.recv) * call_.element_bytes();
}

/// Writes the input, and a byte that no right result has, to the buffers.
Status Bench::fill(const PerfCounts& counts, bool in_place) {
  call_.fill_input(place_call(settings_.call, counts, in_place, first_.on_host(), second_.on_host()), counts, 0);
  if (auto ok = first_.upload(bytes_of(counts)); !ok) return ok;
  return second_.upload(bytes_of(counts));
}

/// Counts the wrong elements of the result, which always lies in the second buffer.
Status Bench::check(const PerfCounts& counts, bool in_place, Measurement& measurement) {
  if (auto ok = second_.download(bytes_of(counts)); !ok) return ok;
  const CallPlace at = place_call(settings_.call, counts, in_place, first_.on_host(), second_.on_host());
  measurement.wrong = call_.wrong_elements(at.recv, counts, 0);
  if (settings_.call.exact) measurement.largest_error = static_cast<double>(call_.largest_error(at.recv, counts, 0));
  return {};
}

Status Bench::repeat(const PerfCall& call, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    if (const auto status = cli::run(call, comm_); status != TRIBUTARY_OK)
      return std::unexpected(error_of(status, comm_));
  }
  return {};
}

Result<Measurement> Bench::measure(const PerfCounts& counts, bool in_place) {
  const CallPlace at = place_call(settings_.call, counts, in_place, first_.for_calls(), second_.for_calls());
  const PerfCall call = call_.at(at, counts);
  if (auto ok = fill(counts, in_place); !ok) return std::unexpected(ok.error());
  if (auto ok = repeat(call, settings_.warmup); !ok) return std::unexpected(ok.error());
  if (const auto s = tributary_barrier(comm_, nullptr); s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm_));
  const auto begin = steady_clock::now();
  if (auto ok = repeat(call, settings_.iterations); !ok) return std::unexpected(ok.error());
  const std::chrono::duration<double, std::micro> took = steady_clock::now() - begin;
  Measurement measurement{.microseconds = took.count() / settings_.iterations};
  if (settings_.check) {
    if (auto ok = fill(counts, in_place); !ok) return std::unexpected(ok.error());
    if (auto ok = repeat(call, 1); !ok) return std::unexpected(ok.error());
    if (auto ok = check(counts, in_place, measurement); !ok) return std::unexpected(ok.error());
  }
  return measurement;
}

/// Computes the mean time and the number of wrong elements over all ranks, and the bandwidths.
Status Bench::conclude(Measurement& m, const PerfCounts& counts) {
  std::array<double, 2> values{m.microseconds / settings_.call.ranks, static_cast<double>(m.wrong.value_or(0))};
  const auto status = tributary_all_reduce(values.data(), values.data(), values.size(), TRIBUTARY_FLOAT64,
                                           TRIBUTARY_SUM, comm_, nullptr);
  if (status != TRIBUTARY_OK) return std::unexpected(error_of(status, comm_));
  m.microseconds = values[0];
  if (settings_.call.exact) {
    const auto most =
        tributary_all_reduce(&m.largest_error, &m.largest_error, 1, TRIBUTARY_FLOAT64, TRIBUTARY_MAX, comm_, nullptr);
    if (most != TRIBUTARY_OK) return std::unexpected(error_of(most, comm_));
  }
  // Keep this rank's own count, because the sum over the ranks may be wrong, too.
  if (m.wrong) m.wrong = std::max(*m.wrong, static_cast<std::uint64_t>(values[1]));
  const auto bytes = static_cast<double>(bytes_of(counts));
  m.algorithm_gbytes_per_second = bytes / m.microseconds / 1e3;
  m.bus_gbytes_per_second = m.algorithm_gbytes_per_second * bus_factor(settings_.call.collective, settings_.call.ranks);
  return {};
}

Result<BenchRow> Bench::run(std::uint64_t bytes) {
  const std::size_t element = call_.element_bytes();
  const PerfCounts counts = counts_of(settings_.call.collective, bytes / element, settings_.call.ranks);
  BenchRow row{.bytes = bytes_of(counts), .count = counts.count};
  const auto before = info();
  if (!before) return std::unexpected(before.error());
  auto out_of_place = measure(counts, false);
  if (!out_of_place) return std::unexpected(out_of_place.error());
  row.out_of_place = *out_of_place;
  if (can_be_in_place(settings_.call.collective)) {
    auto in_place = measure(counts, true);
    if (!in_place) return std::unexpected(in_place.error());
    row.in_place = *in_place;
  }
  const auto after = info();
  if (!after) return std::unexpected(after.error());
  TRIBUTARY_ASSERT(after->bytes_in_network >= before->bytes_in_network && after->bytes_local >= before->bytes_local &&
                       after->bytes_fallback >= before->bytes_fallback,
                   "the library's counters fell: in-network {} to {}, fallback {} to {}", before->bytes_in_network,
                   after->bytes_in_network, before->bytes_fallback, after->bytes_fallback);
  row.bytes_in_network = after->bytes_in_network - before->bytes_in_network;
  row.bytes_local = after->bytes_local - before->bytes_local;
  row.bytes_fallback = after->bytes_fallback - before->bytes_fallback;
  if (auto ok = conclude(row.out_of_place, counts); !ok) return std::unexpected(ok.error());
  if (row.in_place) {
    if (auto ok = conclude(*row.in_place, counts); !ok) return std::unexpected(ok.error());
  }
  return row;
}

Result<tributary_info> Bench::info() const {
  tributary_info now{};
  now.struct_bytes = sizeof now;
  if (const auto s = tributary_comm_info(comm_, &now); s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm_));
  return now;
}

}  // namespace tributary::cli

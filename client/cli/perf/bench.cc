#include "client/cli/perf/bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace tributary::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kAlignment = 4096;
constexpr int kNothing = 0xA5;  // what a result's place holds before: no result looks like it for long

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
    default:
      return Errc::io;
  }
}

/// Whose contributions this rank gets to see unreduced.
bool needs_rank(PerfCollective collective, std::uint32_t other, const BenchSettings& s) {
  switch (collective) {
    case PerfCollective::all_gather:
    case PerfCollective::all_to_all:
      return true;
    case PerfCollective::gather:
      return s.rank == s.root;
    case PerfCollective::broadcast:
    case PerfCollective::scatter:
      return other == s.root;
    case PerfCollective::sendrecv:
      return other == (s.rank + s.ranks - 1) % s.ranks;
    default:
      return false;
  }
}

}  // namespace

Error error_of(tributary_status status, const tributary_comm* comm) {
  return {code_of(status), tributary_last_error(comm)};
}

void Bench::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

Bench::Buffer Bench::allocate(std::uint64_t bytes) {
  const std::uint64_t whole = (bytes / kAlignment + 1) * kAlignment;
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)));
}

Bench::Bench(const BenchSettings& settings, tributary_comm* comm)
    : settings_(settings), comm_(comm), pattern_(settings.dtype, settings.op, settings.ranks) {}

Result<Bench> Bench::create(const BenchSettings& settings, std::uint64_t bytes_max, tributary_comm* comm) {
  Bench bench(settings, comm);
  bench.first_ = allocate(bytes_max);
  bench.second_ = allocate(bytes_max);
  if (!bench.first_ || !bench.second_)
    return fail(Errc::exhausted, "there is no memory for two buffers of " + std::to_string(bytes_max) + " bytes");
  bench.own_ = bench.pattern_.contribution(settings.rank);
  if (reduces(settings.collective)) bench.reduced_ = bench.pattern_.reduced();
  bench.of_rank_.resize(settings.ranks);
  for (std::uint32_t rank = 0; rank < settings.ranks; ++rank) {
    if (needs_rank(settings.collective, rank, settings)) bench.of_rank_[rank] = bench.pattern_.contribution(rank);
  }
  return bench;
}

/// By the rules in tributary.h.
Bench::Place Bench::place(const PerfCounts& counts, bool in_place) const {
  if (!in_place) return {first_.get(), second_.get()};
  std::byte* whole = second_.get();
  std::byte* part = whole + settings_.rank * counts.count * pattern_.element_bytes();
  switch (settings_.collective) {
    case PerfCollective::all_gather:
    case PerfCollective::gather:
      return {part, whole};
    case PerfCollective::reduce_scatter:
    case PerfCollective::scatter:
      return {whole, part};
    default:
      return {whole, whole};
  }
}

PerfCall Bench::call_at(const Place& at, const PerfCounts& counts) const {
  return {.collective = settings_.collective,
          .send = at.send,
          .recv = at.recv,
          .count = counts.count,
          .dtype = static_cast<tributary_dtype>(settings_.dtype),
          .op = static_cast<tributary_op>(settings_.op),
          .root = static_cast<int>(settings_.root),
          .rank = static_cast<int>(settings_.rank),
          .ranks = static_cast<int>(settings_.ranks)};
}

void Bench::fill_input(const Place& at, const PerfCounts& counts) const {
  const std::size_t element = pattern_.element_bytes();
  std::memset(at.recv, kNothing, counts.recv * element);
  tile(own_, element, 0, {at.send, counts.send * element});
}

/// What all ranks together have to see is told by the tables; what a rank must not be given is not looked at.
std::uint64_t Bench::wrong_elements(const std::byte* recv, const PerfCounts& counts) const {
  const std::size_t element = pattern_.element_bytes();
  const bool is_root = settings_.rank == settings_.root;
  const std::uint64_t own_part = std::uint64_t{settings_.rank} * counts.count;
  const auto wrong = [&](const std::vector<std::byte>& right, std::size_t first, std::size_t part) {
    return count_wrong(right, element, first, {recv + part * counts.count * element, counts.count * element});
  };
  switch (settings_.collective) {
    case PerfCollective::all_reduce:
      return wrong(reduced_, 0, 0);
    case PerfCollective::reduce:
      return is_root ? wrong(reduced_, 0, 0) : 0;
    case PerfCollective::reduce_scatter:
      return wrong(reduced_, own_part, 0);
    case PerfCollective::broadcast:
      return wrong(of_rank_[settings_.root], 0, 0);
    case PerfCollective::scatter:
      return wrong(of_rank_[settings_.root], own_part, 0);
    case PerfCollective::sendrecv:
      return wrong(of_rank_[(settings_.rank + settings_.ranks - 1) % settings_.ranks], 0, 0);
    case PerfCollective::barrier:
      return 0;
    default:
      break;
  }
  if (settings_.collective == PerfCollective::gather && !is_root) return 0;
  const std::uint64_t first = settings_.collective == PerfCollective::all_to_all ? own_part : 0;
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) sum += wrong(of_rank_[rank], first, rank);
  return sum;
}

Status Bench::repeat(const PerfCall& call, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    if (const auto status = cli::run(call, comm_); status != TRIBUTARY_OK)
      return std::unexpected(error_of(status, comm_));
  }
  return {};
}

Result<Measurement> Bench::measure(const PerfCounts& counts, bool in_place) {
  const Place at = place(counts, in_place);
  const PerfCall call = call_at(at, counts);
  fill_input(at, counts);
  if (auto ok = repeat(call, settings_.warmup); !ok) return std::unexpected(ok.error());
  if (const auto s = tributary_barrier(comm_, nullptr); s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm_));
  const auto begin = steady_clock::now();
  if (auto ok = repeat(call, settings_.iterations); !ok) return std::unexpected(ok.error());
  const std::chrono::duration<double, std::micro> took = steady_clock::now() - begin;
  Measurement measurement{.microseconds = took.count() / settings_.iterations};
  if (settings_.check) {
    fill_input(at, counts);
    if (auto ok = repeat(call, 1); !ok) return std::unexpected(ok.error());
    measurement.wrong = wrong_elements(at.recv, counts);
  }
  return measurement;
}

/// Over all ranks: the mean time, and the sum of what is wrong. Then the bandwidths.
Status Bench::conclude(Measurement& m, const PerfCounts& counts) {
  std::array<double, 2> values{m.microseconds / settings_.ranks, static_cast<double>(m.wrong.value_or(0))};
  const auto status = tributary_all_reduce(values.data(), values.data(), values.size(), TRIBUTARY_FLOAT64,
                                           TRIBUTARY_SUM, comm_, nullptr);
  if (status != TRIBUTARY_OK) return std::unexpected(error_of(status, comm_));
  m.microseconds = values[0];
  // What this rank has seen itself counts, even should the sum be wrong, too.
  if (m.wrong) m.wrong = std::max(*m.wrong, static_cast<std::uint64_t>(values[1]));
  const auto bytes = static_cast<double>(std::max(counts.send, counts.recv) * pattern_.element_bytes());
  m.algorithm_gbytes_per_second = bytes / m.microseconds / 1e3;
  m.bus_gbytes_per_second = m.algorithm_gbytes_per_second * bus_factor(settings_.collective, settings_.ranks);
  return {};
}

Result<BenchRow> Bench::run(std::uint64_t bytes) {
  const std::size_t element = pattern_.element_bytes();
  const PerfCounts counts = counts_of(settings_.collective, bytes / element, settings_.ranks);
  BenchRow row{.bytes = std::max(counts.send, counts.recv) * element, .count = counts.count};
  const auto before = info();
  if (!before) return std::unexpected(before.error());
  auto out_of_place = measure(counts, false);
  if (!out_of_place) return std::unexpected(out_of_place.error());
  row.out_of_place = *out_of_place;
  if (can_be_in_place(settings_.collective)) {
    auto in_place = measure(counts, true);
    if (!in_place) return std::unexpected(in_place.error());
    row.in_place = *in_place;
  }
  const auto after = info();
  if (!after) return std::unexpected(after.error());
  row.bytes_in_network = after->bytes_in_network - before->bytes_in_network;
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

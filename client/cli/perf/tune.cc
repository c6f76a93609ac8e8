#include "client/cli/perf/tune.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "client/cli/perf/owned_comm.h"
#include "client/tuning/calibration.h"

namespace tributary::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kAlternations = 5;

/// One way to run the collective, with a communicator that uses only this way.
struct Way {
  tuning::Path path = tuning::Path::ranks;
  tuning::Algorithm algorithm = tuning::Algorithm::ring;
  OwnedComm comm;
  std::optional<Bench> bench;

  [[nodiscard]] std::string text() const {
    return path == tuning::Path::tree ? tuning::name(path) : schedule::name(algorithm);
  }
};

std::optional<Collective> collective_of(PerfCollective collective) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    if (to_string(static_cast<Collective>(i)) == to_string(collective)) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

Status write_file(const std::string& file, const std::string& text) {
  const std::string draft = file + ".new";
  std::ofstream out(draft, std::ios::trunc);
  if (out << text && out.flush() && rename(draft.c_str(), file.c_str()) == 0) return {};
  const int number = errno;
  unlink(draft.c_str());
  return fail(Errc::io, file + " cannot be written: " + std::strerror(number));
}

class Tuner {
 public:
  Tuner(const TuneOptions& options, Collective collective, tributary_comm* comm,
        const std::function<void(const std::string&)>& show)
      : options_(options), call_(options.bench.call), collective_(collective), comm_(comm), show_(show) {}

  Status run() {
    // Read the old file first, so that an unreadable file is an error before the first measurement.
    if (auto ok = agree(read_old()); !ok) return ok;
    if (auto ok = make_ways(); !ok) return ok;
    for (const std::uint64_t bytes : options_.sizes) {
      if (auto ok = measure(bytes); !ok) return ok;
      if (collective_ == Collective::barrier) break;
    }
    for (Way& way : ways_) {
      way.bench.reset();
      if (const auto s = tributary_comm_destroy(way.comm.release()); s != TRIBUTARY_OK)
        return std::unexpected(error_of(s, nullptr));
    }
    return agree(write());
  }

 private:
  [[nodiscard]] bool is_first() const { return call_.rank == 0; }

  /// Shares the outcome of a step. After an error of rank 0 it ends every rank at once, without a time-out: rank 0
  /// drops its communicators, which aborts the other ranks' communicators.
  Status agree(Status status) const {
    if (!status) return status;
    if (const auto s = tributary_barrier(comm_, nullptr); s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm_));
    return {};
  }

  Status read_old() {
    if (!is_first() || access(options_.file.c_str(), F_OK) != 0) return {};
    auto table = tuning::read_table(options_.file);
    if (!table) return std::unexpected(table.error());
    table_ = std::move(*table);
    return {};
  }

  Result<OwnedComm> make_comm(const char* path, const std::string& tuning) const {
    tributary_unique_id id{};
    if (is_first()) {
      if (const auto s = tributary_get_unique_id(&id); s != TRIBUTARY_OK) return std::unexpected(error_of(s, nullptr));
    }
    const auto sent = tributary_broadcast(&id, &id, sizeof id, TRIBUTARY_UINT8, 0, comm_, nullptr);
    if (sent != TRIBUTARY_OK) return std::unexpected(error_of(sent, comm_));
    tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
    config.path = path;
    config.tuning = tuning.c_str();
    tributary_comm* comm = nullptr;
    const auto made = tributary_comm_init_rank_config(&comm, static_cast<int>(call_.ranks), &id,
                                                      static_cast<int>(call_.rank), &config);
    if (made != TRIBUTARY_OK) return std::unexpected(error_of(made, nullptr));
    return OwnedComm(comm);
  }

  Status add(tuning::Path path, tuning::Algorithm algorithm, OwnedComm comm) {
    auto bench = Bench::create(options_.bench, *std::ranges::max_element(options_.sizes), comm.get());
    if (!bench) return std::unexpected(bench.error());
    ways_.push_back({path, algorithm, std::move(comm), std::move(*bench)});
    return {};
  }

  Status make_ways() {
    if (in_network_capable(collective_)) {
      auto comm = make_comm("auto", "off");
      if (!comm) return std::unexpected(comm.error());
      tributary_info info{};
      info.struct_bytes = sizeof info;
      if (const auto s = tributary_comm_info(comm->get(), &info); s != TRIBUTARY_OK)
        return std::unexpected(error_of(s, comm->get()));
      if (info.path == TRIBUTARY_PATH_IN_NETWORK) {
        if (auto ok = add(tuning::Path::tree, {}, std::move(*comm)); !ok) return ok;
        segment_bytes_ = info.segment_bytes;
      } else {
        show_(fmt::format("# no tree: {}\n", info.reason));
        if (const auto s = tributary_comm_destroy(comm->release()); s != TRIBUTARY_OK)
          return std::unexpected(error_of(s, nullptr));
      }
    }
    for (const tuning::Algorithm algorithm : schedule::algorithms(collective_)) {
      const std::string rules = fs::temp_directory_path() / fmt::format("tributary-tune-{}.json", getpid());
      tuning::Table only;
      only.rules = {{.collective = collective_, .step = {.path = tuning::Path::ranks, .algorithm = algorithm}}};
      if (is_first()) {
        if (auto ok = write_file(rules, tuning::to_text(only)); !ok) return ok;
      }
      auto comm = make_comm("fallback", is_first() ? rules : "auto");
      if (is_first()) unlink(rules.c_str());
      if (!comm) return std::unexpected(comm.error());
      if (auto ok = add(tuning::Path::ranks, algorithm, std::move(*comm)); !ok) return ok;
    }
    if (auto ok = count_parties(); !ok) return ok;
    std::string names;
    for (const Way& way : ways_) names += fmt::format(" {:>22}", way.text());
    show_(fmt::format("# {} over {} ranks: us, medians of {} x {} operations\n# {:>12}{}  quickest\n",
                      to_string(collective_), call_.ranks, kAlternations, options_.bench.iterations, "size (B)",
                      names));
    return {};
  }

  /// Counts the ranks that the choice concerns: one for each host, if each host's ranks reduce in its memory first.
  Status count_parties() {
    for (const Way& way : ways_) {
      tributary_info info{};
      info.struct_bytes = sizeof info;
      if (const auto s = tributary_comm_info(way.comm.get(), &info); s != TRIBUTARY_OK)
        return std::unexpected(error_of(s, way.comm.get()));
      if (&way != ways_.data() && info.hosts != hosts_)
        return fail(Errc::retry, "the ways to compare do not treat the hosts alike, so no table was written");
      hosts_ = info.hosts;
    }
    if (hosts_ != 0) {
      show_(
          fmt::format("# the ranks of each of {} hosts reduce in its memory first: the table is for {} ranks, "
                      "one for each host\n",
                      hosts_, hosts_));
    }
    return {};
  }

  Status measure(std::uint64_t bytes) {
    std::vector<std::vector<double>> times(ways_.size());
    std::uint64_t whole = bytes;
    for (std::uint32_t i = 0; i < kAlternations; ++i) {
      for (std::size_t w = 0; w < ways_.size(); ++w) {
        const auto row = ways_[w].bench->run(bytes);
        if (!row) return std::unexpected(row.error());
        if (row->out_of_place.wrong.value_or(0) != 0 || (row->in_place && row->in_place->wrong.value_or(0) != 0))
          return fail(Errc::corrupt, "the sum was wrong by " + ways_[w].text() + ", so no table was written");
        times[w].push_back(row->out_of_place.microseconds);
        whole = row->bytes;
      }
    }
    std::string line = fmt::format("  {:>12}", whole);
    std::size_t best = 0;
    for (std::size_t w = 0; w < ways_.size(); ++w) {
      std::ranges::nth_element(times[w], times[w].begin() + kAlternations / 2);
      const double median = times[w][kAlternations / 2];
      measured_.push_back(
          {collective_, hosts_ != 0 ? hosts_ : call_.ranks, collective_ == Collective::barrier ? 0 : whole,
           ways_[w].path,
           ways_[w].path == tuning::Path::tree ? schedule::algorithms(collective_).front() : ways_[w].algorithm,
           median});
      if (median < measured_[measured_.size() - 1 - w + best].time_us) best = w;
      line += fmt::format(" {:>22.1f}", median);
    }
    show_(line + "  " + ways_[best].text() + "\n");
    return {};
  }

  Status write() {
    if (!is_first()) return {};
    tuning::Figures start = table_ ? table_->figures : tuning::Figures{};
    start.cores = tuning::cores_here();
    start.ranks_per_host = hosts_ != 0 ? 1 : options_.ranks_per_host;
    if (segment_bytes_ != 0) start.segment_bytes = segment_bytes_;
    tuning::Table table = table_.value_or(tuning::Table{});
    tuning::add_measured(table, measured_, start);
    if (auto ok = write_file(options_.file, tuning::to_text(table)); !ok) return ok;
    show_(fmt::format("# written: {}; TRIBUTARY_TUNING={} on rank 0 uses it\n", options_.file, options_.file));
    return {};
  }

  const TuneOptions& options_;
  const CallShape& call_;
  const Collective collective_;
  tributary_comm* const comm_;
  const std::function<void(const std::string&)>& show_;
  std::optional<tuning::Table> table_;  // the rules in the old file
  std::uint32_t segment_bytes_ = 0;
  std::uint32_t hosts_ = 0;  // the member `hosts` of tributary_info
  std::vector<Way> ways_;
  std::vector<tuning::MeasuredTime> measured_;
};

}  // namespace

Status tune(const TuneOptions& options, tributary_comm* comm, const std::function<void(const std::string&)>& show) {
  const auto collective = collective_of(options.bench.call.collective);
  if (!collective) return fail(Errc::bad_argument, "--tune: sendrecv has only one way");
  return Tuner(options, *collective, comm, show).run();
}

}  // namespace tributary::cli

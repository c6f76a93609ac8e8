#include "client/cli/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cli/cluster/machine.h"
#include "client/cli/compare/gloo_rank.h"
#include "client/cli/compare/python.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr std::uint32_t kWarmUp = 3;
constexpr std::uint64_t kLargestMin = 64U << 10;
constexpr std::uint64_t kLargestMax = 16U << 20;
constexpr double kLargestSeconds = 0.15;
constexpr double kTurnSeconds = 0.5;
constexpr double kOverheadSeconds = 1e-3;  // time of an operation without its bytes, with many ranks on few cores
constexpr std::uint32_t kOperationsMin = 5, kOperationsMax = 100;

/// Runs the three contestants one after the other, for each size.
class Contest {
 public:
  explicit Contest(const ComparisonSettings& settings) : settings_(settings), result_(settings.shape) {}

  Result<Comparison> run() {
    for (const std::uint64_t bytes : settings_.bytes) {
      settings_.say("measuring " + bytes_text(bytes) + ": with aggregators, then the ranks alone");
      ComparedSize size{.bytes = bytes};
      if (auto ok = run_ours(size, true); !ok) return std::unexpected(ok.error());
      if (auto ok = run_ours(size, false); !ok) return std::unexpected(ok.error());
      result_.sizes.push_back(size);
    }
    if (auto ok = run_gloo(); !ok) return std::unexpected(ok.error());
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::uint32_t operations(std::uint64_t bytes) const {
    return operations_of_turn(bytes, result_.hosts, result_.link_bits);
  }

  Status run_ours(ComparedSize& size, bool with_service) {
    const std::string name = (with_service ? "tree-" : "ranks-") + std::to_string(size.bytes);
    const std::string file = settings_.folder + "/" + name + ".json", bytes = std::to_string(size.bytes);
    RanksJob job{.command = {settings_.program, "perf", "all_reduce", "-b", bytes, "-e", bytes, "-n",
                             std::to_string(operations(size.bytes)), "-w", std::to_string(kWarmUp), "--json", file},
                 .variables = {},
                 .with_service = with_service,
                 .log = settings_.folder + "/" + name + ".log"};
    if (!with_service) job.variables["TRIBUTARY_PATH"] = "fallback";
    if (auto ok = finish(job, with_service ? "the ranks with aggregators" : "the ranks alone"); !ok) return ok;
    std::ifstream in(file);
    const json report = json::parse(in, nullptr, false);
    if (report.is_discarded()) return fail(Errc::corrupt, file + " is no JSON");
    const double took = report.at("rows").at(0).at("in_place").at("time_us");
    (with_service ? size.tree_us : size.ranks_us) = took;
    if (!with_service) return {};
    const double by_tree = report.at("bytes_in_network"), between = report.at("bytes_fallback");
    size.in_network = by_tree + between > 0 ? by_tree / (by_tree + between) : 0;
    return {};
  }

  /// Measure Gloo once for all sizes, because the import of PyTorch takes seconds.
  Status run_gloo() {
    const auto python = find_python_with_torch(settings_.python);
    if (!python) {
      result_.gloo_absent = python.error().message;
      return {};
    }
    settings_.say("measuring Gloo, by " + *python);
    const std::string script = settings_.folder + "/gloo_rank.py", file = settings_.folder + "/gloo.json";
    std::ofstream(script) << kGlooRank;
    RanksJob job{.command = {*python, "-B", script, file},
                 .variables = {{"OMP_NUM_THREADS", "1"}},
                 .log = settings_.folder + "/gloo.log"};
    for (const std::uint64_t bytes : settings_.bytes) {
      job.command.push_back(std::to_string(bytes) + ":" + std::to_string(operations(bytes)) + ":" +
                            std::to_string(kWarmUp));
    }
    if (auto ok = finish(job, "Gloo"); !ok) {
      if (ok.error().code == Errc::aborted) return ok;
      result_.gloo_absent = ok.error().message;
      return {};
    }
    std::ifstream in(file);
    const json times = json::parse(in, nullptr, false);
    if (!times.is_array() || times.size() != result_.sizes.size()) {
      result_.gloo_absent = "its ranks left no result in " + file;
      return {};
    }
    for (std::size_t i = 0; i < times.size(); ++i) result_.sizes[i].gloo_us = times[i].get<double>();
    return {};
  }

  Status finish(const RanksJob& job, const std::string& who) const {
    const auto end = settings_.run(job);
    if (!end) return std::unexpected(end.error());
    if (end->interrupted) return fail(Errc::aborted, "interrupted");
    if (end->code == 0) return {};
    return fail(Errc::io, who + " ended with exit code " + std::to_string(end->code) + ":\n" + tail_of(job.log));
  }

  const ComparisonSettings& settings_;
  Comparison result_;
};

/// Returns the least time of the ranks alone on these links: each rank sends and receives all parts but its own twice.
double ranks_alone_seconds(std::uint64_t bytes, std::uint32_t ranks, std::uint64_t link_bits) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) * 8 / static_cast<double>(link_bits);
}

}  // namespace

std::vector<std::uint64_t> compared_sizes(std::uint64_t link_bits) {
  constexpr int kCount = 5;
  const double fitting = std::exp2(std::floor(std::log2(kLargestSeconds * static_cast<double>(link_bits) / 8)));
  std::uint64_t bytes = static_cast<std::uint64_t>(
      std::clamp(fitting, static_cast<double>(kLargestMin), static_cast<double>(kLargestMax)));
  std::vector<std::uint64_t> sizes(kCount);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size, bytes /= 4) *size = bytes;
  return sizes;
}

std::uint32_t operations_of_turn(std::uint64_t bytes, std::uint32_t ranks, std::uint64_t link_bits) {
  const double each = ranks_alone_seconds(bytes, ranks, link_bits) + kOverheadSeconds;
  return std::clamp(static_cast<std::uint32_t>(kTurnSeconds / each), kOperationsMin, kOperationsMax);
}

Result<Comparison> compare(const ComparisonSettings& settings) {
  return Contest(settings).run();
}

}  // namespace tributary::cli

#include "client/cli/perf/perf_command.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "client/cli/perf/launch.h"
#include "client/cli/perf/meet.h"
#include "client/cli/perf/owned_comm.h"
#include "client/cli/perf/report.h"
#include "client/cli/perf/tune.h"
#include "client/cli/terminal/exit_code.h"
#include "service-kit/one_setting.h"

namespace tributary::cli {
namespace {

struct PlaceRecord {
  std::array<char, 56> host{};
  std::int64_t pid = 0;
  std::int64_t gpu = -1;  // the GPU with the rank's buffers; -1: they lie in host memory
};
static_assert(sizeof(PlaceRecord) == 72);

class Perf {
 public:
  Perf(PerfOptions options, Launch launch) : options_(std::move(options)), launch_(std::move(launch)) {
    if (service::one_setting("TRIBUTARY_REQUIRE", "TRIBUTARY_CONFIG", "require") == "in-network")
      options_.require_in_network = true;
    options_.bench.call.rank = launch_.rank;
    options_.bench.call.ranks = launch_.ranks;
    report_.settings = options_.bench;
    report_.launcher = launch_.launcher;
  }

  Result<int> run() {
    if (options_.bench.call.root >= launch_.ranks) {
      return fail(Errc::bad_argument, "--root " + std::to_string(options_.bench.call.root) + ": there are " +
                                          std::to_string(launch_.ranks) + " ranks");
    }
    if (auto ok = open_gpu(); !ok) return std::unexpected(ok.error());
    tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
    if (options_.require_in_network) config.require = "in-network";
    auto comm = meet(launch_, {.id_file = options_.id_file, .seconds = options_.meet_seconds}, config);
    if (!comm) return std::unexpected(comm.error());
    auto code = run_with(*comm);
    // Tell the other ranks the cause: their own errors are then only consequences.
    if (!code && *comm) tributary_comm_abort_because(comm->release(), code.error().message.c_str());
    return code;
  }

 private:
  Result<int> run_with(OwnedComm& comm) {
    if (auto ok = tell_places(comm.get()); !ok) return std::unexpected(ok.error());
    if (auto ok = read_info(comm.get(), report_.at_start); !ok) return std::unexpected(ok.error());
    if (options_.tune_file.empty()) show(header_text(report_, options_.bytes_min, options_.bytes_max, step_text()));
    if (!options_.tune_file.empty()) {
      show(memory_text(report_));
      if (auto ok = tune_sizes(comm.get()); !ok) return std::unexpected(ok.error());
      if (const auto s = tributary_comm_destroy(comm.release()); s != TRIBUTARY_OK)
        return std::unexpected(error_of(s, nullptr));
      return kExitGood;
    }
    if (auto ok = run_sizes(comm.get()); !ok) return std::unexpected(ok.error());
    if (auto ok = read_info(comm.get(), report_.at_end); !ok) return std::unexpected(ok.error());
    if (const auto s = tributary_comm_destroy(comm.release()); s != TRIBUTARY_OK)
      return std::unexpected(error_of(s, nullptr));
    show(footer_text(report_));
    if (auto ok = write_json(); !ok) return std::unexpected(ok.error());
    if (options_.require_in_network && bytes_in_network(report_) == 0) {
      return fail(Errc::unreachable,
                  std::string("--require in-network: no byte went by a tree: ") + why_no_byte(report_));
    }
    return wrong_elements(report_) == 0 ? kExitGood : kExitFailed;
  }

  /// Opens the GPU before the library makes the communicator: the library looks for the driver that the process has.
  Status open_gpu() {
    if (!options_.gpu_memory) return {};
    auto gpu = PerfGpu::open(launch_.local_rank);
    if (!gpu) return std::unexpected(gpu.error());
    report_.settings.gpu = options_.bench.gpu = std::move(*gpu);
    return {};
  }

  Status tell_places(tributary_comm* comm) {
    PlaceRecord own;
    gethostname(own.host.data(), own.host.size() - 1);
    own.pid = getpid();
    if (options_.bench.gpu) own.gpu = options_.bench.gpu->device();
    std::vector<PlaceRecord> all(launch_.ranks);
    const auto s = tributary_all_gather(&own, all.data(), sizeof own, TRIBUTARY_UINT8, comm, nullptr);
    if (s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm));
    for (PlaceRecord& one : all) {
      one.host.back() = '\0';
      report_.places.push_back({one.host.data(), one.pid, one.gpu});
    }
    return {};
  }

  static Status read_info(tributary_comm* comm, tributary_info& info) {
    info.struct_bytes = sizeof info;
    const auto s = tributary_comm_info(comm, &info);
    if (s != TRIBUTARY_OK) return std::unexpected(error_of(s, comm));
    return {};
  }

  [[nodiscard]] std::string step_text() const {
    if (options_.factor != 0) return std::to_string(options_.factor) + " (factor)";
    return std::to_string(options_.bytes_step) + " (bytes)";
  }

  Status run_sizes(tributary_comm* comm) {
    auto bench = Bench::create(options_.bench, options_.bytes_max, comm);
    if (!bench) return std::unexpected(bench.error());
    const bool sizeless = options_.bench.call.collective == PerfCollective::barrier;
    for (std::uint64_t bytes = options_.bytes_min; bytes <= options_.bytes_max;) {
      auto row = bench->run(bytes);
      if (!row) return std::unexpected(row.error());
      report_.rows.push_back(*row);
      show(row_text(report_, *row));
      if (sizeless) break;
      bytes = options_.factor != 0 ? bytes * options_.factor : bytes + options_.bytes_step;
    }
    return {};
  }

  /// Returns the most ranks on one machine, by the ranks' host names.
  [[nodiscard]] std::uint32_t ranks_per_host() const {
    std::map<std::string, std::uint32_t> on;
    std::uint32_t most = 1;
    for (const RankPlace& place : report_.places) most = std::max(most, ++on[place.host]);
    return most;
  }

  Status tune_sizes(tributary_comm* comm) {
    TuneOptions wanted{
        .bench = options_.bench, .sizes = {}, .file = options_.tune_file, .ranks_per_host = ranks_per_host()};
    for (std::uint64_t bytes = options_.bytes_min; bytes <= options_.bytes_max;) {
      wanted.sizes.push_back(bytes);
      bytes = options_.factor != 0 ? bytes * options_.factor : bytes + options_.bytes_step;
    }
    return tune(wanted, comm, [this](const std::string& text) { show(text); });
  }

  void show(const std::string& text) const {
    if (launch_.rank != 0 || options_.json_file == "-") return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  [[nodiscard]] Status write_json() const {
    if (launch_.rank != 0 || options_.json_file.empty()) return {};
    const std::string text = to_json(report_).dump(1) + "\n";
    if (options_.json_file == "-") {
      if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return {};
    } else {
      std::ofstream out(options_.json_file, std::ios::trunc);
      if (out << text && out.flush()) return {};
    }
    return fail(Errc::io, options_.json_file + " cannot be written: " + std::strerror(errno));
  }

  PerfOptions options_;
  const Launch launch_;
  PerfReport report_;
};

}  // namespace

int perf(PerfOptions options) {
  const auto complain = [](std::uint32_t rank, const Error& error) {
    std::fprintf(stderr, "tributary perf: rank %u: %s\n", rank, error.message.c_str());
    const bool of_another_rank = error.code == Errc::aborted || error.code == Errc::peer_gone;
    return of_another_rank ? kExitOtherRank : exit_code_of(error.code);
  };
  const auto launch = detect_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (!launch) return complain(0, launch.error());
  const auto code = Perf(std::move(options), *launch).run();
  return code ? *code : complain(launch->rank, code.error());
}

}  // namespace tributary::cli

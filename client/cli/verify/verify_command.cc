#include "client/cli/verify/verify_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client/cli/perf/bench.h"
#include "client/cli/perf/launch.h"
#include "client/cli/perf/meet.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/verify/bit_check.h"

namespace tributary::cli {
namespace {

constexpr std::array kTypes{DType::float32, DType::float64,     DType::bfloat16,
                            DType::float16, DType::float8_e4m3, DType::float8_e5m2};

tributary_config exact_config() {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.numerics = "exact";
  return config;
}

Result<tributary_info> info_of(tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof info;
  if (const auto status = tributary_comm_info(comm, &info); status != TRIBUTARY_OK)
    return std::unexpected(error_of(status, comm));
  return info;
}

/// The calls of one type on one path.
struct Row {
  std::string path;
  DType dtype = DType::float32;
  BitTally tally;
};

/// A communicator that takes one path.
struct Way {
  std::string name;
  OwnedComm comm;
  // The path is another layout of one that takes all calls, so it takes only short sums to all ranks: with other lanes,
  // or with the ranks in reverse order.
  bool only_sums = false;
};

constexpr std::uint64_t kShortElements = 4099;

struct Layout {
  bool only_sums = false;
  bool reversed = false;  // the last rank becomes rank 0
};

class VerifyBits {
 public:
  VerifyBits(const VerifyOptions& options, Launch launch) : options_(options), launch_(std::move(launch)) {}

  Result<int> run() {
    auto code = run_all();
    // Tell the other ranks the cause: their own errors are then only consequences.
    for (Way& way : ways_) {
      if (!code && way.comm) tributary_comm_abort_because(way.comm.release(), code.error().message.c_str());
    }
    return code;
  }

 private:
  Result<int> run_all() {
    if (auto ok = open_ways(); !ok) return std::unexpected(ok.error());
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (const DType dtype : kTypes) {
        if (auto ok = check_type(dtype, options_.seed + round); !ok) return std::unexpected(ok.error());
      }
    }
    return conclude();
  }

  /// The first communicator runs between the ranks. It carries the other communicators' ids.
  Status open_ways() {
    // A job begins without trees if they form slowly. This tool is here to try them, so it waits, unless told otherwise.
    setenv("TRIBUTARY_BEGIN_WITHIN", "30000", 0);
    tributary_config config = exact_config();
    config.path = "fallback";
    config.local = "off";
    auto first = meet(launch_, {.id_file = options_.id_file, .seconds = options_.meet_seconds}, config);
    if (!first) return std::unexpected(first.error());
    ways_.push_back({"between the ranks", std::move(*first)});
    show("# verify-bits: " + std::to_string(launch_.ranks) + " ranks, up to " + std::to_string(options_.elements_max) +
         " elements, seed " + std::to_string(options_.seed) + ", " + std::to_string(options_.rounds) + " round(s)\n");
    config = exact_config();
    config.path = "auto";
    if (options_.require_in_network) config.require = "in-network";
    config.local = "off";
    config.tuning = "off";
    if (auto ok = open_trees(config); !ok) return ok;
    config = exact_config();
    auto usual = make(config);
    if (!usual) return std::unexpected(usual.error());
    const auto info = info_of(usual->get());
    if (!info) return std::unexpected(info.error());
    const bool local = info->path == TRIBUTARY_PATH_LOCAL;
    const std::string hosts = std::to_string(info->hosts) + " hosts";
    ways_.push_back({local             ? "shared memory"
                     : info->hosts > 0 ? hosts + ", as the job chooses"
                                       : "as the job chooses",
                     std::move(*usual)});
    if (info->hosts > 0) {
      if (auto ok = open_hosts(hosts); !ok) return ok;
    }
    if (auto ok = open_layouts(); !ok) return ok;
    show("# begins\n");
    return {};
  }

  /// Opens trees with other numbers of lanes, and with the ranks in reverse order, if there are trees.
  Status open_layouts() {
    const auto trees = std::ranges::find_if(ways_, [](const Way& way) { return way.name.starts_with("trees"); });
    if (trees == ways_.end()) return {};
    const auto shape = shape_of(trees->comm.get());
    if (!shape) return std::unexpected(shape.error());
    tributary_config config = exact_config();
    config.path = "auto";
    config.local = "off";
    config.tuning = "off";
    if (auto ok = open_trees(config, "reverse order, ", {.only_sums = true, .reversed = true}); !ok) return ok;
    for (const std::uint32_t lanes : {1U, 2U, 4U}) {
      config.lanes = static_cast<int>(lanes);
      if (lanes == shape->lanes) continue;
      if (auto ok = open_trees(config, "", {.only_sums = true}); !ok) return ok;
    }
    return {};
  }

  /// Opens the paths of hosts that first sum their ranks' values: between their leaders, and by trees of leaders.
  Status open_hosts(const std::string& hosts) {
    tributary_config config = exact_config();
    config.path = "fallback";
    auto between = make(config);
    if (!between) return std::unexpected(between.error());
    ways_.push_back({hosts + ", between leaders", std::move(*between)});
    config = exact_config();
    config.tuning = "off";
    return open_trees(config, hosts + ", ");
  }

  /// Opens a communicator for trees, and closes it if there are none. `prefix`: of the path's name.
  Status open_trees(const tributary_config& config, const std::string& prefix = "", const Layout& layout = {}) {
    auto comm = make(config, layout.reversed);
    if (!comm) return std::unexpected(comm.error());
    const auto shape = shape_of(comm->get());
    if (!shape) return std::unexpected(shape.error());
    if (shape->levels == 0) {
      const auto info = info_of(comm->get());
      show("# no trees: " + (info ? std::string(info->reason) : info.error().message) + "\n");
      if (const auto status = tributary_comm_destroy(comm->release()); status != TRIBUTARY_OK)
        return std::unexpected(error_of(status, nullptr));
      return {};
    }
    ways_.push_back(
        {prefix + "trees, " + std::to_string(shape->levels) + " level(s), " + std::to_string(shape->lanes) + " lane(s)",
         std::move(*comm), layout.only_sums});
    return {};
  }

  /// The shape of a communicator's trees. No levels: it has no trees.
  struct TreesShape {
    std::uint32_t levels = 0, lanes = 0;
  };
  /// Returns the shape that rank 0 sees now. Trees form and get lost at different moments for different ranks, and all
  /// ranks must make the same calls.
  Result<TreesShape> shape_of(tributary_comm* comm) {
    const auto info = info_of(comm);
    if (!info) return std::unexpected(info.error());
    std::array<std::uint32_t, 2> shape{};
    if (info->path == TRIBUTARY_PATH_IN_NETWORK) shape = {info->levels, info->lanes};
    tributary_comm* const by = ways_.front().comm.get();
    if (const auto s = tributary_broadcast(shape.data(), shape.data(), shape.size(), TRIBUTARY_UINT32, 0, by, nullptr);
        s != TRIBUTARY_OK)
      return std::unexpected(error_of(s, by));
    return TreesShape{.levels = shape[0], .lanes = shape[1]};
  }

  Result<OwnedComm> make(const tributary_config& config, bool reversed = false) {
    tributary_unique_id id{};
    tributary_comm* const by = ways_.front().comm.get();
    const std::uint32_t last = launch_.ranks - 1;
    const std::uint32_t rank = reversed ? last - launch_.rank : launch_.rank;
    if (rank == 0) {
      if (const auto s = tributary_get_unique_id(&id); s != TRIBUTARY_OK) return std::unexpected(error_of(s, nullptr));
    }
    if (const auto s = tributary_broadcast(&id, &id, sizeof id, TRIBUTARY_UINT8, static_cast<int>(reversed ? last : 0),
                                           by, nullptr);
        s != TRIBUTARY_OK)
      return std::unexpected(error_of(s, by));
    tributary_comm* made = nullptr;
    const auto status =
        tributary_comm_init_rank_config(&made, static_cast<int>(launch_.ranks), &id, static_cast<int>(rank), &config);
    if (status != TRIBUTARY_OK) return std::unexpected(error_of(status, nullptr));
    return OwnedComm(made);
  }

  Status check_type(DType dtype, std::uint64_t seed) {
    constexpr std::array<std::uint64_t, 8> kSizes{0, 1, 5, 257, 1023, 4099, 65536, 1U << 20};
    for (const BitFamily family : kBitFamilies) {
      for (std::uint64_t size : kSizes) {
        if (size > options_.elements_max) continue;
        const BitCase all{.dtype = dtype, .family = family, .count = size, .seed = seed};
        if (auto ok = check(all); !ok) return ok;
        if (size > kShortElements) continue;
        for (const auto& [collective, op] :
             {std::pair{Collective::all_reduce, ReduceOp::avg}, std::pair{Collective::reduce_scatter, ReduceOp::sum},
              std::pair{Collective::reduce, ReduceOp::avg}, std::pair{Collective::all_reduce, ReduceOp::prod},
              std::pair{Collective::reduce_scatter, ReduceOp::prod}}) {
          BitCase other = all;
          other.collective = collective;
          other.op = op;
          if (auto ok = check(other); !ok) return ok;
        }
      }
    }
    return {};
  }

  Status check(const BitCase& of) {
    const BitCheck one(of, launch_.rank, launch_.ranks);
    const bool short_sum =
        of.collective == Collective::all_reduce && of.op != ReduceOp::prod && of.count <= kShortElements;
    for (const Way& way : ways_) {
      if (way.only_sums && !short_sum) continue;
      Row& row = row_of(way.name, of.dtype);
      if (auto ok = one.run(way.comm.get(), row.tally); !ok) return ok;
    }
    return {};
  }

  Row& row_of(const std::string& path, DType dtype) {
    const auto found =
        std::ranges::find_if(rows_, [&](const Row& row) { return row.path == path && row.dtype == dtype; });
    if (found != rows_.end()) return *found;
    rows_.push_back({.path = path, .dtype = dtype, .tally = {}});
    return rows_.back();
  }

  /// Compares all ranks' tallies, and prints the table.
  Result<int> conclude() {
    bool right = true;
    std::ranges::stable_sort(rows_, {}, &Row::path);
    show("# path                                          type          calls    elements       wrong  ranks agree\n");
    for (const Row& row : rows_) {
      std::array<std::uint64_t, 2> sums{row.tally.elements, row.tally.wrong};
      std::array<std::uint64_t, 2> most{row.tally.digest, ~row.tally.digest};
      if (auto ok = over_all_ranks(sums, TRIBUTARY_SUM); !ok) return std::unexpected(ok.error());
      if (auto ok = over_all_ranks(most, TRIBUTARY_MAX); !ok) return std::unexpected(ok.error());
      const bool agree = most[0] == ~most[1];
      right = right && agree && sums[1] == 0;
      char line[160];
      std::snprintf(line, sizeof line, "  %-45s %-11s %7llu %11llu %11llu  %s\n", row.path.c_str(),
                    std::string(to_string(row.dtype)).c_str(), static_cast<unsigned long long>(row.tally.calls),
                    static_cast<unsigned long long>(sums[0]), static_cast<unsigned long long>(sums[1]),
                    agree ? "yes" : "NO");
      show(line);
      if (!row.tally.first_wrong.empty()) {
        std::fprintf(stderr, "tributary verify-bits: rank %u: %s: %s\n", launch_.rank, row.path.c_str(),
                     row.tally.first_wrong.c_str());
      }
    }
    if (auto ok = close_ways(); !ok) return std::unexpected(ok.error());
    show(right ? "# every bit is right\n" : "# WRONG BITS: see the ranks' messages\n");
    return right ? kExitGood : kExitFailed;
  }

  Status over_all_ranks(std::array<std::uint64_t, 2>& values, tributary_op op) {
    tributary_comm* const by = ways_.front().comm.get();
    const auto status =
        tributary_all_reduce(values.data(), values.data(), values.size(), TRIBUTARY_UINT64, op, by, nullptr);
    if (status != TRIBUTARY_OK) return std::unexpected(error_of(status, by));
    return {};
  }

  Status close_ways() {
    for (Way& way : ways_) {
      const auto info = info_of(way.comm.get());
      if (!info) return std::unexpected(info.error());
      show("# " + way.name + ": bytes in-network " + std::to_string(info->bytes_in_network) + ", between the ranks " +
           std::to_string(info->bytes_fallback) + ", in shared memory " + std::to_string(info->bytes_local) +
           "; trees were lost " + std::to_string(info->failovers) + " time(s)\n");
      if (const auto status = tributary_comm_destroy(way.comm.release()); status != TRIBUTARY_OK)
        return std::unexpected(error_of(status, nullptr));
    }
    return {};
  }

  void show(const std::string& text) const {
    if (launch_.rank != 0) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  const VerifyOptions options_;
  const Launch launch_;
  std::vector<Way> ways_;
  std::vector<Row> rows_;
};

}  // namespace

int verify_bits(const VerifyOptions& options) {
  const auto complain = [](std::uint32_t rank, const Error& error) {
    std::fprintf(stderr, "tributary verify-bits: rank %u: %s\n", rank, error.message.c_str());
    const bool of_another_rank = error.code == Errc::aborted || error.code == Errc::peer_gone;
    return of_another_rank ? kExitOtherRank : exit_code_of(error.code);
  };
  const auto launch = detect_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (!launch) return complain(0, launch.error());
  const auto code = VerifyBits(options, *launch).run();
  return code ? *code : complain(launch->rank, code.error());
}

}  // namespace tributary::cli

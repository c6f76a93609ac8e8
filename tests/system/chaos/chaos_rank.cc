// One rank of a chaos or soak run: mixed collectives in several groups at once, until rank 0 finds the stop file.
//
//   tributary_chaos_rank --stop-file FILE [--seed N] [--bytes-max N] [--rounds-per-life N] [--world-only]
//     [--pause-rank N --pause-file FILE]
//
// The groups of n ranks are: all ranks; two halves; and the odd and the even ranks, with two lanes each. With
// --rounds-per-life the ranks make the smaller groups again after that many rounds; with --world-only they make none.
// While the pause file exists, the pause rank begins no round.
// The program reports on standard output, one line each:
//   ready
//   round NUMBER END_US GAP_US { NAME PATH EPOCH FAILOVERS RETURNS LONGEST_PAUSE_US DIGEST }...
//   done OPERATIONS BYTES_IN_NETWORK BYTES_FALLBACK
//   error TEXT             and exit code 3;  wrong TEXT and exit code 4 when a result is not right
// END_US is CLOCK_MONOTONIC, GAP_US the longest time within the round in which no operation of this rank ended.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/cli/perf/id_exchange.h"
#include "client/cli/perf/launch.h"
#include "tests/system/chaos/mixed_round.h"

namespace tributary::chaos {
namespace {

constexpr int kExitError = 3;
constexpr int kExitWrong = 4;

struct Options {
  std::string stop_file;
  std::uint64_t seed = 1;
  std::size_t bytes_max = 1U << 20;
  std::uint64_t rounds_per_life = 0;  // rounds after which the smaller groups are made again; 0: never
  bool world_only = false;
  std::uint32_t pause_rank = 0;
  std::string pause_file;  // empty: no rank pauses
};

std::uint64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

Error library_error(tributary_status status, const tributary_comm* comm, const char* what) {
  return {Errc::peer_gone,
          std::string(what) + ": " + tributary_status_string(status) + ": " + tributary_last_error(comm)};
}

/// One communicator and its part of the rounds. end() ends it in an orderly way; the destructor without end() aborts
/// it.
class Group {
 public:
  Group(std::string name, tributary_comm* comm, std::uint32_t rank, std::uint32_t ranks, const Options& options)
      : name_(std::move(name)),
        comm_(comm),
        round_({comm, rank, ranks}, options.seed * 1000 + std::hash<std::string>{}(name_) % 1000, options.bytes_max) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (comm_ != nullptr) tributary_comm_abort(comm_);
  }

  [[nodiscard]] tributary_comm* comm() const noexcept { return comm_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] MixedRound& round() noexcept { return round_; }

  Status end() {
    const auto status = tributary_comm_destroy(std::exchange(comm_, nullptr));
    if (status == TRIBUTARY_OK) return {};
    return std::unexpected(library_error(status, nullptr, "tributary_comm_destroy"));
  }

  Result<tributary_info> info() const {
    tributary_info info{};
    info.struct_bytes = sizeof info;
    if (const auto s = tributary_comm_info(comm_, &info); s != TRIBUTARY_OK)
      return std::unexpected(library_error(s, comm_, "tributary_comm_info"));
    return info;
  }

 private:
  std::string name_;
  tributary_comm* comm_;
  MixedRound round_;
};

using GroupPointer = std::unique_ptr<Group>;

class Rank {
 public:
  Rank(Options options, cli::Launch launch) : options_(std::move(options)), launch_(std::move(launch)) {}

  Status run() {
    if (auto ok = make_world(); !ok) return ok;
    if (!options_.world_only) {
      if (auto ok = make_smaller_groups(); !ok) return ok;
    }
    std::puts("ready");
    std::fflush(stdout);
    for (std::uint64_t round = 0;; ++round) {
      const auto go_on = all_go_on();
      if (!go_on) return std::unexpected(go_on.error());
      if (!*go_on) break;
      if (auto ok = run_round(round); !ok) return ok;
      if (options_.rounds_per_life != 0 && (round + 1) % options_.rounds_per_life == 0) {
        if (auto ok = renew_smaller_groups(); !ok) return ok;
      }
    }
    return finish();
  }

 private:
  Status make_world() {
    cli::IdBytes bytes{};
    tributary_unique_id id{};
    const cli::IdMeeting meeting{.rank = launch_.rank,
                                 .ranks = launch_.ranks,
                                 .host = launch_.master_host,
                                 .port = launch_.master_port,
                                 .job = {}};
    if (launch_.rank == 0) {
      if (const auto s = tributary_get_unique_id(&id); s != TRIBUTARY_OK)
        return std::unexpected(library_error(s, nullptr, "tributary_get_unique_id"));
      std::memcpy(bytes.data(), id.bytes, bytes.size());
      if (auto ok = cli::hand_out_id(bytes, meeting); !ok) return ok;
    } else {
      const auto got = cli::fetch_id(meeting);
      if (!got) return std::unexpected(got.error());
      std::memcpy(id.bytes, got->data(), got->size());
    }
    return add_group(world_, "world", id, launch_.rank, launch_.ranks, 1);
  }

  Status add_group(GroupPointer& into, const std::string& name, const tributary_unique_id& id, std::uint32_t rank,
                   std::uint32_t ranks, int lanes) {
    tributary_comm* comm = nullptr;
    tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
    config.lanes = lanes;
    config.job = name.c_str();
    const auto status =
        tributary_comm_init_rank_config(&comm, static_cast<int>(ranks), &id, static_cast<int>(rank), &config);
    if (status != TRIBUTARY_OK) return std::unexpected(library_error(status, nullptr, "tributary_comm_init_rank"));
    into = std::make_unique<Group>(name, comm, rank, ranks, options_);
    return {};
  }

  /// The first rank of each new group makes its id; the communicator of all ranks carries the ids to the other ranks.
  Status make_smaller_groups() {
    const std::uint32_t n = launch_.ranks, me = launch_.rank;
    const std::uint32_t half = n / 2;
    const bool upper = me >= half, odd = me % 2 == 1;
    tributary_unique_id own[2]{};
    if ((me == 0 || me == half) && tributary_get_unique_id(&own[0]) != TRIBUTARY_OK)
      return fail(Errc::io, std::string("no unique id: ") + tributary_last_error(nullptr));
    if (me < 2 && tributary_get_unique_id(&own[1]) != TRIBUTARY_OK)
      return fail(Errc::io, std::string("no unique id: ") + tributary_last_error(nullptr));
    std::vector<tributary_unique_id> all(2 * n);
    const auto status = tributary_all_gather(own, all.data(), sizeof own, TRIBUTARY_UINT8, world_->comm(), nullptr);
    if (status != TRIBUTARY_OK)
      return std::unexpected(library_error(status, world_->comm(), "all_gather of unique ids"));
    if (auto ok = add_group(halves_, upper ? "upper" : "lower", all[2 * (upper ? half : 0)], upper ? me - half : me,
                            upper ? n - half : half, 1);
        !ok) {
      return ok;
    }
    return add_group(parity_, odd ? "odd" : "even", all[2 * (odd ? 1 : 0) + 1], me / 2, odd ? n / 2 : (n + 1) / 2, 2);
  }

  Status renew_smaller_groups() {
    for (GroupPointer* group : {&halves_, &parity_}) {
      if (!*group) continue;
      remember((*group)->info());
      if (auto ok = (*group)->end(); !ok) return ok;
      operations_ += (*group)->round().operations();
      group->reset();
    }
    return options_.world_only ? Status{} : make_smaller_groups();
  }

  /// Rank 0 looks for the stop file; all ranks learn in the same round whether it is there.
  Result<bool> all_go_on() {
    while (launch_.rank == options_.pause_rank && access(options_.pause_file.c_str(), F_OK) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::int32_t stop = launch_.rank == 0 && access(options_.stop_file.c_str(), F_OK) == 0 ? 1 : 0;
    const auto status = tributary_all_reduce(&stop, &stop, 1, TRIBUTARY_INT32, TRIBUTARY_MAX, world_->comm(), nullptr);
    if (status != TRIBUTARY_OK) return std::unexpected(library_error(status, world_->comm(), "all_reduce to stop"));
    return stop == 0;
  }

  [[nodiscard]] std::vector<Group*> groups() const {
    std::vector<Group*> list;
    for (const GroupPointer* group : {&world_, &halves_, &parity_}) {
      if (*group) list.push_back(group->get());
    }
    return list;
  }

  Status run_round(std::uint64_t number) {
    const std::vector<Group*> groups = this->groups();
    std::uint64_t last = now_us(), gap = 0;
    const auto ended = [&] {
      const std::uint64_t now = now_us();
      gap = std::max(gap, now - last);
      last = now;
    };
    for (Group* group : groups) {
      if (auto ok = group->round().start(number); !ok) return in_group(*group, ok.error());
    }
    for (Group* group : groups) {
      if (auto ok = group->round().finish(ended); !ok) return in_group(*group, ok.error());
    }
    return report(number, groups, last, gap);
  }

  static Status in_group(const Group& group, const Error& error) {
    return fail(error.code, "group " + group.name() + ": " + error.message);
  }

  static Status report(std::uint64_t number, const std::vector<Group*>& groups, std::uint64_t end, std::uint64_t gap) {
    std::printf("round %" PRIu64 " %" PRIu64 " %" PRIu64, number, end, gap);
    for (Group* group : groups) {
      const auto info = group->info();
      if (!info) return in_group(*group, info.error());
      std::printf(" %s %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64, group->name().c_str(),
                  info->path == TRIBUTARY_PATH_IN_NETWORK ? "in-network" : "fallback", info->epoch, info->failovers,
                  info->returns, info->longest_pause_us, group->round().digest());
    }
    std::puts("");
    std::fflush(stdout);
    return {};
  }

  void remember(const Result<tributary_info>& info) {
    if (!info) return;
    bytes_in_network_ += info->bytes_in_network;
    bytes_fallback_ += info->bytes_fallback;
  }

  Status finish() {
    for (Group* group : groups()) {
      remember(group->info());
      operations_ += group->round().operations();
      if (auto ok = group->end(); !ok) return in_group(*group, ok.error());
    }
    std::printf("done %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", operations_, bytes_in_network_, bytes_fallback_);
    std::fflush(stdout);
    return {};
  }

  const Options options_;
  const cli::Launch launch_;
  GroupPointer world_, halves_, parity_;
  std::uint64_t operations_ = 0, bytes_in_network_ = 0, bytes_fallback_ = 0;
};

int run(int argc, char** argv) {
  CLI::App app("One rank of a chaos run");
  Options options;
  app.add_option("--stop-file", options.stop_file)->required();
  app.add_option("--seed", options.seed);
  app.add_option("--bytes-max", options.bytes_max);
  app.add_option("--rounds-per-life", options.rounds_per_life);
  app.add_flag("--world-only", options.world_only);
  app.add_option("--pause-rank", options.pause_rank);
  app.add_option("--pause-file", options.pause_file);
  CLI11_PARSE(app, argc, argv);
  const auto launch = cli::detect_launch([](const char* name) -> const char* { return std::getenv(name); });
  Status ok = launch ? Rank(options, *launch).run() : std::unexpected(launch.error());
  if (ok) return 0;
  const bool wrong = ok.error().code == Errc::corrupt;
  std::printf("%s %s\n", wrong ? "wrong" : "error", ok.error().message.c_str());
  std::fflush(stdout);
  return wrong ? kExitWrong : kExitError;
}

}  // namespace
}  // namespace tributary::chaos

int main(int argc, char** argv) {
  return tributary::chaos::run(argc, argv);
}

#include "client/cli/run/run_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "client/cli/cluster/local_cluster.h"
#include "client/cli/cluster/machine.h"
#include "client/cli/run/rank_processes.h"
#include "client/cli/terminal/exit_code.h"

namespace tributary::cli {
namespace {

constexpr int kExitNoCommand = 127;  // the code that shells, env and timeout use

/// Removes the folder when its last user ends, unless it is to be kept.
class PrivateFolder {
 public:
  explicit PrivateFolder(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    if (keep_) {
      std::fprintf(stderr, "tributary run: the configuration, state and logs are in %s\n", path_.c_str());
    } else {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  bool keep_;
};

ClusterShape shape_of(const RunOptions& options) {
  const std::uint32_t levels = std::max(1U, options.levels);
  const std::uint32_t needed = levels <= 1 ? 1 : (1U << levels) - 1;  // every aggregator except a leaf has two below it
  return {.ranks = options.ranks,
          .aggregators = options.aggregators < 0 ? needed : static_cast<std::uint32_t>(options.aggregators),
          .levels = options.levels};
}

/// Removes the variables of a launcher around this process: the ranks belong to this one.
void forget_other_launchers(Environment& environment) {
  for (const char* name : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TRIBUTARY_MANAGER",
                           "TRIBUTARY_TOKEN_FILE", "TRIBUTARY_HOST_ID"}) {
    environment.erase(name);
  }
}

Environment rank_environment(const RunOptions& options, const LocalCluster* cluster, std::uint16_t port,
                             std::uint32_t rank) {
  Environment environment = current_environment();
  forget_other_launchers(environment);
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options.ranks);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(port);
  environment["TRIBUTARY_LANES"] = options.lanes == 0 ? "auto" : std::to_string(options.lanes);
  if (cluster != nullptr) cluster->add_to(environment, rank);
  return environment;
}

class Run {
 public:
  Run(const RunOptions& options, const SignalQueue& signals, const Guardian& guardian, std::string folder)
      : options_(options), signals_(signals), guardian_(guardian), folder_(std::move(folder)) {}

  int run() {
    if (options_.aggregators != 0) {
      if (auto ok = start_cluster(); !ok) return complain(ok.error());
    }
    const auto port = free_port();
    if (!port) return complain(port.error());
    RankProcesses ranks(
        {.ranks = options_.ranks,
         .command = options_.command,
         .prefix = options_.prefix,
         .grace = std::chrono::milliseconds(static_cast<std::int64_t>(options_.grace_seconds * 1000)),
         .environment = [&](std::uint32_t rank) { return rank_environment(options_, cluster_.get(), *port, rank); },
         .on_child_ended = [this] { look_at_daemons(); }},
        signals_, guardian_);
    const auto code = ranks.run();
    if (code) return *code;
    complain(code.error());
    return code.error().code == Errc::bad_argument ? kExitNoCommand : kExitFailed;
  }

 private:
  Status start_cluster() {
    auto cluster = LocalCluster::start({.shape = shape_of(options_),
                                        .lanes = options_.lanes,
                                        .addresses = options_.addresses,
                                        .folder = folder_,
                                        .log_level = options_.verbose ? "debug" : "info",
                                        .interrupted = [this] { return interrupted(); }},
                                       &guardian_);
    if (!cluster) return std::unexpected(cluster.error());
    cluster_ = std::move(*cluster);
    return check_plan();
  }

  /// Fails before the command starts, rather than let it measure a tree that was not asked for.
  Status check_plan() const {
    if (options_.ranks < 2) return {};
    const auto levels = cluster_->planned_levels(options_.lanes);
    if (!levels) return std::unexpected(levels.error());
    if (options_.levels == 0 || *levels == options_.levels) {
      spdlog::info("manager {}; aggregators: {}; levels of the tree: {}", cluster_->manager_url(),
                   cluster_->aggregators(), *levels);
      return {};
    }
    return fail(Errc::exhausted, "the manager plans a tree of " + std::to_string(*levels) + " levels, not of " +
                                     std::to_string(options_.levels) + "; use more aggregators or more ranks");
  }

  bool interrupted() {
    while (const auto number = signals_.take()) {
      if (*number != SIGCHLD) stopped_by_ = *number;
    }
    return stopped_by_ != 0;
  }

  void look_at_daemons() const {
    if (!cluster_) return;
    for (const std::string& sentence : cluster_->ended()) spdlog::warn("{}; the ranks go on without it", sentence);
  }

  int complain(const Error& error) const {
    if (stopped_by_ != 0) return 128 + stopped_by_;
    std::fprintf(stderr, "tributary run: %s\n", error.message.c_str());
    return exit_code_of(error.code);
  }

  const RunOptions& options_;
  const SignalQueue& signals_;
  const Guardian& guardian_;
  const std::string folder_;
  std::unique_ptr<LocalCluster> cluster_;
  int stopped_by_ = 0;
};

int complain(const Error& error) {
  std::fprintf(stderr, "tributary run: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

}  // namespace

int run(const RunOptions& options) {
  if (options.verbose) spdlog::set_level(spdlog::level::info);
  if (options.aggregators != 0) {
    if (const auto layout = lay_out_cluster(shape_of(options)); !layout) return complain(layout.error());
  }
  const auto signals = SignalQueue::open();
  if (!signals) return complain(signals.error());
  auto path = make_private_folder();
  if (!path) return complain(path.error());
  const PrivateFolder folder(*path, options.keep);
  const auto guardian = Guardian::start(folder.path());
  if (!guardian) return complain(guardian.error());
  if (options.keep) guardian->keep_folder();
  return Run(options, *signals, *guardian, folder.path()).run();
}

}  // namespace tributary::cli

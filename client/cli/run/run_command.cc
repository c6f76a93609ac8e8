#include "client/cli/run/run_command.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/cli/cluster/local_cluster.h"
#include "client/cli/cluster/machine.h"
#include "client/cli/compare/comparison.h"
#include "client/cli/compare/comparison_report.h"
#include "client/cli/free_port/free_port.h"
#include "client/cli/network/host_network.h"
#include "client/cli/run/rank_environment.h"
#include "client/cli/run/rank_processes.h"
#include "client/cli/terminal/colour.h"
#include "client/cli/terminal/exit_code.h"

namespace tributary::cli {
namespace {

constexpr int kExitNoCommand = 127;  // the exit code that shells, env and timeout use

/// Owns the folder: removes it at the end, unless the user wants to keep it.
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
  const std::uint32_t needed = levels <= 1 ? 1 : (1U << levels) - 1;  // every aggregator except a leaf has two children
  ClusterShape shape{.ranks = options.ranks,
                     .aggregators = options.aggregators < 0 ? needed : static_cast<std::uint32_t>(options.aggregators),
                     .levels = options.levels};
  if (!options.hosts) return shape;
  shape.levels = levels;  // hosts have one switch, unless the user wants more levels
  shape.rank_bits_per_second = options.hosts->link_bits;
  if (options.hosts->aggregator_link_bits != 0) shape.aggregator_bits_per_second = options.hosts->aggregator_link_bits;
  return shape;
}

/// Checks the wanted transport: hosts in namespaces have no device except their link.
Status check_transport() {
  const char* const wanted = std::getenv("TRIBUTARY_TRANSPORT");
  if (wanted == nullptr || std::string_view(wanted).starts_with("tcp") || std::string_view(wanted).starts_with("udp"))
    return {};
  return fail(Errc::bad_config, "TRIBUTARY_TRANSPORT is " + std::string(wanted) +
                                    ", but the hosts of --hosts have no devices for it: set it to tcp or udp");
}

Status check_picture(const std::string& file) {
  if (file.empty()) return {};
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (access(folder.c_str(), W_OK) == 0) return {};
  return fail(Errc::io, folder.string() + ", the folder of --picture, cannot be written: " + std::strerror(errno));
}

class Run {
 public:
  Run(const RunOptions& options, const SignalQueue& signals, const Guardian& guardian, std::string folder)
      : options_(options), signals_(signals), guardian_(guardian), folder_(std::move(folder)) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int run() {
    if (options_.hosts) {
      if (auto ok = make_hosts(); !ok) return complain(ok.error());
    }
    if (options_.aggregators != 0) {
      if (auto ok = start_cluster(); !ok) return complain(ok.error());
    }
    if (options_.command.empty()) return show_comparison();
    const auto end = run_ranks({.command = options_.command, .variables = {}, .with_service = true, .log = ""});
    if (end) return end->code;
    complain(end.error());
    return end.error().code == Errc::bad_argument ? kExitNoCommand : kExitFailed;
  }

 private:
  Status make_hosts() {
    std::vector<HostLink> links{{.host = kManagerHost}};
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
      links.push_back({.host = host_of_rank(rank), .bits_per_second = options_.hosts->link_bits});
    if (options_.aggregators != 0) {
      const auto layout = lay_out_cluster(shape_of(options_));
      if (!layout) return std::unexpected(layout.error());
      for (const PlacedAggregator& placed : layout->aggregators)
        links.push_back({.host = placed.host, .bits_per_second = options_.hosts->aggregator_link_bits});
    }
    auto network = HostNetwork::make(std::move(links));
    if (!network) return std::unexpected(network.error());
    network_ = std::move(*network);
    return network_->enter(kManagerHost);  // from now on this process reaches the manager, which starts on this host
  }

  Status start_cluster() {
    auto cluster = LocalCluster::start({.shape = shape_of(options_),
                                        .lanes = options_.lanes,
                                        .addresses = options_.addresses,
                                        .folder = folder_,
                                        .log_level = options_.verbose ? "debug" : "info",
                                        .interrupted = [this] { return interrupted(); },
                                        .network = network_.get()},
                                       &guardian_);
    if (!cluster) return std::unexpected(cluster.error());
    cluster_ = std::move(*cluster);
    return check_plan();
  }

  /// Fails before the command starts, if it would measure a tree that the user did not ask for.
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

  Result<RanksEnd> run_ranks(const RanksJob& job) {
    const auto port = free_port();
    if (!port) return std::unexpected(port.error());
    const int log = job.log.empty() ? -1 : open(job.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (!job.log.empty() && log < 0) return fail(Errc::io, job.log + " cannot be written: " + std::strerror(errno));
    RankProcesses ranks({.ranks = options_.ranks,
                         .command = job.command,
                         .prefix = options_.prefix,
                         .output = log < 0 ? STDOUT_FILENO : log,
                         .error = log < 0 ? STDERR_FILENO : log,
                         .grace = std::chrono::milliseconds(static_cast<std::int64_t>(options_.grace_seconds * 1000)),
                         .environment = [&](std::uint32_t rank) { return environment_of(job, *port, rank); },
                         .host = network_ ? host_of_ : std::function<ChildHost(std::uint32_t)>(),
                         .on_child_ended = [this] { look_at_daemons(); }},
                        signals_, guardian_);
    const auto code = ranks.run();
    if (log >= 0) close(log);
    if (!code) return std::unexpected(code.error());
    return RanksEnd{.code = *code, .interrupted = ranks.interrupted()};
  }

  Environment environment_of(const RanksJob& job, std::uint16_t port, std::uint32_t rank) const {
    const LocalCluster* const cluster = job.with_service ? cluster_.get() : nullptr;
    Environment environment = rank_environment(options_, cluster, network_.get(), port, rank);
    for (const auto& [name, value] : job.variables) environment[name] = value;
    return environment;
  }

  int show_comparison() {
    const RunHosts& hosts = *options_.hosts;
    const auto program = find_program("tributary");
    if (!program) return complain(program.error());
    Comparison shape;
    shape.hosts = options_.ranks;
    shape.link_bits = hosts.link_bits;
    shape.aggregators = static_cast<std::uint32_t>(cluster_->aggregators());
    shape.aggregator_link_bits = hosts.aggregator_link_bits;
    int code = 0;  // exit code of ranks that a signal has stopped
    const auto run_job = [&](const RanksJob& job) {
      auto end = run_ranks(job);
      if (end && end->interrupted) code = end->code;
      return end;
    };
    const auto result = compare({.shape = std::move(shape),
                                 .bytes = hosts.bytes.empty() ? compared_sizes(hosts.link_bits) : hosts.bytes,
                                 .folder = folder_,
                                 .program = *program,
                                 .python = hosts.python,
                                 .say = [](const std::string& what) { std::fprintf(stderr, "# %s\n", what.c_str()); },
                                 .run = run_job});
    if (code != 0) return code;
    if (!result) return complain(result.error());
    std::fputs(comparison_table(*result, output_takes_colour()).c_str(), stdout);
    if (hosts.picture.empty()) return kExitGood;
    std::ofstream out(hosts.picture, std::ios::trunc);
    if (out << comparison_picture(*result) && out.flush()) return kExitGood;
    return complain(Error{Errc::io, hosts.picture + " cannot be written: " + std::strerror(errno)});
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
  const std::function<ChildHost(std::uint32_t)> host_of_ = [this](std::uint32_t rank) {
    return network_->place_of(host_of_rank(rank));
  };
  std::unique_ptr<HostNetwork> network_;  // must outlive the cluster, which runs on its hosts
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
  if (options.hosts) {
    if (auto ok = check_transport(); !ok) return complain(ok.error());
    if (auto ok = check_picture(options.hosts->picture); !ok) return complain(ok.error());
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

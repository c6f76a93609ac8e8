#pragma once
// A manager and its aggregators as processes of this machine. They run as long as this object lives.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "client/cli/cluster/cluster_layout.h"
#include "client/cli/cluster/guardian.h"
#include "client/cli/network/host_network.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct LocalClusterSettings {
  ClusterShape shape;
  // The number of lanes. It is also the number of each aggregator's workers, at most one per core. 0: as many as save
  // time, which is one lane in a ClusterLayout.
  std::uint32_t lanes = 1;
  std::uint32_t addresses = 1;      // addresses of each aggregator; over RDMA each belongs to another device
  std::string folder;               // an existing folder for configuration, state and logs
  std::string log_level = "info";   // the daemons' log level
  std::string manager_settings;     // further lines for the manager's configuration file
  std::string aggregator_settings;  // further lines for the configuration files of all aggregators
  std::chrono::milliseconds start_limit{30'000};
  std::function<bool()> interrupted;  // called while start() waits: true ends the wait; may be empty
  // The network: this thread is already on its host kManagerHost. The aggregators run on its other hosts, which the
  // layout names. nullptr: all processes run on this machine's loopback.
  const HostNetwork* network = nullptr;
};

inline constexpr const char* kManagerHost = "manager";

/// The cluster. Start, kill and restart daemons from the main thread (see ChildProcess). The destructor asks running
/// daemons to stop, and kills those that do not stop.
class LocalCluster {
 public:
  /// Starts the cluster. Returns when the manager serves and has registered every aggregator. Errc::aborted:
  /// `interrupted` returned true. Other errors quote the log of the daemon that did not start.
  [[nodiscard]] static Result<std::unique_ptr<LocalCluster>> start(LocalClusterSettings settings,
                                                                   const Guardian* guardian);
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;
  ~LocalCluster();

  [[nodiscard]] const ClusterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::string& manager_url() const noexcept { return url_; }
  [[nodiscard]] std::string job_token_file() const;
  [[nodiscard]] std::string aggregator_token_file() const;
  /// Adds the variables by which a rank finds the service, and which name its place.
  void add_to(Environment& environment, std::uint32_t rank) const;
  /// Returns how many levels a tree over all ranks would have now. The error says why there would be no tree.
  [[nodiscard]] Result<std::uint32_t> planned_levels(std::uint32_t lanes) const;

  static constexpr std::size_t kManager = SIZE_MAX;  // stands for an aggregator's index
  [[nodiscard]] std::size_t aggregators() const noexcept { return aggregators_.size(); }
  [[nodiscard]] const std::string& name_of(std::size_t which) const noexcept { return daemon(which).name; }
  [[nodiscard]] pid_t pid_of(std::size_t which) const noexcept { return daemon(which).process->pid(); }
  /// Sends SIGKILL, and returns when the process is gone.
  void kill(std::size_t which);
  /// Starts a daemon that was killed or has ended, with the same state and name. The manager keeps its port. Does not
  /// wait until the daemon serves.
  [[nodiscard]] Status restart(std::size_t which);
  /// Waits until the manager answers and every aggregator is registered and active.
  [[nodiscard]] Status wait_until_serving();
  /// Returns a sentence for each daemon that has ended by itself since the previous call.
  [[nodiscard]] std::vector<std::string> ended();

 private:
  [[nodiscard]] static std::string transport();
  [[nodiscard]] static std::string security();
  [[nodiscard]] static std::string shared_memory();
  [[nodiscard]] static std::string late_ranks();
  [[nodiscard]] static std::string hang_after();
  [[nodiscard]] static std::string rdma_settings();
  [[nodiscard]] std::string dpdk_settings(std::uint32_t workers) const;
  [[nodiscard]] std::string address_of(const std::string& host) const;
  [[nodiscard]] std::string data_addresses(const PlacedAggregator& placed) const;
  struct Daemon {
    std::string name;
    std::vector<std::string> command;
    std::string log;
    ChildHost host;
    std::unique_ptr<ChildProcess> process{};
    bool reported = false;
  };

  LocalCluster(LocalClusterSettings settings, const Guardian* guardian);
  [[nodiscard]] Status prepare_manager();
  [[nodiscard]] Status prepare_aggregator(const PlacedAggregator& placed);
  [[nodiscard]] Status spawn(Daemon& daemon);
  [[nodiscard]] bool all_serving() const;
  [[nodiscard]] Status check_daemons();
  void stop(Daemon& daemon, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] const Daemon& daemon(std::size_t which) const noexcept {
    return which == kManager ? manager_ : aggregators_[which];
  }
  [[nodiscard]] Daemon& daemon(std::size_t which) noexcept {
    return which == kManager ? manager_ : aggregators_[which];
  }

  const LocalClusterSettings settings_;
  const Guardian* const guardian_;
  ClusterLayout layout_;
  std::string url_;
  Daemon manager_;
  std::vector<Daemon> aggregators_;
};

}  // namespace tributary::cli

#pragma once
// Several real managers over one etcd.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/system/manager/manager_process.h"
#include "tests/system/replicas/etcd_process.h"

namespace tributary::manager {

/// A configuration in which no lease of a group or an aggregator ends during a test.
inline constexpr const char* kLongLeases = "group_lease: 1h\naggregator_lease: 1h\nleader_lease: 3s\nlog_level: warn\n";

class ManagerFleet {
 public:
  /// own: manager i asks only member i of etcd. So a stop of this member cuts the manager off from etcd, but not from
  /// clients.
  enum class Members { all, own };

  /// Starts the managers one after another, and waits until one leads and all have its secrets.
  ManagerFleet(const EtcdProcesses& etcd, int managers, const std::string& config, Members members = Members::all);

  [[nodiscard]] std::size_t size() const { return managers_.size(); }
  [[nodiscard]] ManagerProcess& at(std::size_t which) { return *managers_.at(which); }
  [[nodiscard]] std::string state_of(std::size_t which) const { return folder_.file("state-" + std::to_string(which)); }
  /// Returns the URLs of all managers, in the form that clients read.
  [[nodiscard]] std::string urls() const;
  /// Returns the manager that says that it leads; nullopt: none says so. A manager that stands still does not answer.
  [[nodiscard]] std::optional<std::size_t> leader() const;
  /// Waits until a manager other than `not_this` leads; throws after half a minute.
  [[nodiscard]] std::size_t wait_leader(std::optional<std::size_t> not_this = std::nullopt) const;
  /// Sends SIGKILL, and waits until the process is gone.
  void kill(std::size_t which);
  /// Starts a killed manager again, at its old address.
  void restart(std::size_t which);

  /// Return a client of all managers, or of one manager.
  [[nodiscard]] manager_client::ManagerClient for_jobs() const { return client(urls(), "job.token"); }
  [[nodiscard]] manager_client::ManagerClient for_aggregators() const { return client(urls(), "aggregator.token"); }
  [[nodiscard]] manager_client::ManagerClient client(const std::string& urls, const std::string& token) const;
  /// Registers an aggregator that has memory for all groups. No process is behind it. False: the managers refuse it.
  [[nodiscard]] bool register_only_aggregator() const;
  /// Returns one manager's answer to a GET; null: it does not answer.
  [[nodiscard]] nlohmann::json ask(std::size_t which, const std::string& path) const;

 private:
  [[nodiscard]] std::unique_ptr<ManagerProcess> start(std::size_t which, const std::string& listen) const;
  [[nodiscard]] std::string store_of(std::size_t which) const;

  const Folder folder_;
  const std::string config_;
  const std::vector<std::string> endpoints_;
  const Members members_;
  std::vector<std::unique_ptr<ManagerProcess>> managers_;
  std::vector<std::string> urls_;
};

}  // namespace tributary::manager

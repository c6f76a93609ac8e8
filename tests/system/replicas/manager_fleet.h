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

class ManagerFleet {
 public:
  /// own: manager i asks member i of etcd alone. To stop that member cuts the manager off from etcd, and from nobody
  /// else.
  enum class Members { all, own };

  /// Starts the managers one after another, and waits until one leads and all have its secrets.
  ManagerFleet(const EtcdProcesses& etcd, int managers, const std::string& config, Members members = Members::all);

  [[nodiscard]] std::size_t size() const { return managers_.size(); }
  [[nodiscard]] ManagerProcess& at(std::size_t which) { return *managers_.at(which); }
  [[nodiscard]] std::string state_of(std::size_t which) const { return folder_.file("state-" + std::to_string(which)); }
  /// The URLs of all, as clients take them.
  [[nodiscard]] std::string urls() const;
  /// Returns the manager that says that it leads; nullopt: none says so. A manager that stands still says nothing.
  [[nodiscard]] std::optional<std::size_t> leader() const;
  /// Waits until one leads, other than `not_this`; throws after half a minute.
  [[nodiscard]] std::size_t wait_leader(std::optional<std::size_t> not_this = std::nullopt) const;
  /// Sends SIGKILL, and waits until the process is gone.
  void kill(std::size_t which);
  /// Starts a manager anew that was killed, at its old address.
  void restart(std::size_t which);

  /// Return clients of all managers, or of one.
  [[nodiscard]] manager_client::ManagerClient for_jobs() const { return client(urls(), "job.token"); }
  [[nodiscard]] manager_client::ManagerClient for_aggregators() const { return client(urls(), "aggregator.token"); }
  [[nodiscard]] manager_client::ManagerClient client(const std::string& urls, const std::string& token) const;
  /// Returns the answer of one manager to GET; null: it does not answer.
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

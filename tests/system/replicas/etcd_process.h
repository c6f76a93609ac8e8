#pragma once
// A real etcd of several members on loopback, which runs during the lifetime of the object.
#include <memory>
#include <string>
#include <vector>

#include "tests/system/manager/manager_process.h"

namespace tributary::manager {

/// Returns whether etcd is installed on this machine.
[[nodiscard]] bool has_etcd();

class EtcdProcesses {
 public:
  /// Starts this many members, and waits until they serve.
  explicit EtcdProcesses(int members);
  ~EtcdProcesses();
  EtcdProcesses(const EtcdProcesses&) = delete;
  EtcdProcesses& operator=(const EtcdProcesses&) = delete;
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }
  [[nodiscard]] std::string list() const;
  void signal(std::size_t member, int number) const;

 private:
  const Folder folder_;
  std::vector<std::string> endpoints_;
  std::vector<int> pids_;
};

}  // namespace tributary::manager

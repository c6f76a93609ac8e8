#pragma once
// A real etcd of several members on loopback, which runs during the lifetime of the object.
#include <memory>
#include <string>
#include <vector>

#include "service-kit/tls/tls_context.h"
#include "tests/system/manager/manager_process.h"

namespace tributary::manager {

/// Returns whether etcd is installed on this machine.
[[nodiscard]] bool has_etcd();

/// Says how members start. With `tls` they serve HTTPS alone, and ask callers for a certificate of the CA in `tls`.
/// `client` has a certificate that the members accept.
struct EtcdWishes {
  service::TlsFiles tls{}, client{};
  std::vector<std::string> more{};  // further options of etcd
  std::string data{};               // folder of the data; empty: a folder that ends with the object
};

class EtcdProcesses {
 public:
  /// Starts this many members, and waits until they serve.
  explicit EtcdProcesses(int members, const EtcdWishes& wishes = {});
  ~EtcdProcesses();
  EtcdProcesses(const EtcdProcesses&) = delete;
  EtcdProcesses& operator=(const EtcdProcesses&) = delete;
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }
  [[nodiscard]] std::string list() const;
  void signal(std::size_t member, int number) const;
  /// Waits until the member's process has ended.
  void wait_end(std::size_t member);
  /// Starts a member that has ended again, on its data.
  void restart(std::size_t member);

 private:
  const Folder folder_;
  std::vector<std::string> endpoints_;
  std::vector<std::vector<std::string>> words_;  // the words of each member's command
  std::vector<int> pids_;
};

}  // namespace tributary::manager

#pragma once
// Real tributary-aggregator processes, a manager that answers as the test says, and children over TCP.
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/system/aggregator/fake_manager.h"
#include "tests/system/aggregator/process.h"
#include "tests/system/aggregator/raw_socket.h"
#include "tests/unit/aggregator/child.h"
#include "tributary/transport/tcp.h"

namespace tributary::aggregator::test {

/// One tributary-aggregator process.
class DaemonProcess {
 public:
  /// Starts the process, and waits until it accepts connections.
  DaemonProcess(const TemporaryFolder& folder, std::string name, std::vector<std::string> arguments,
                const std::vector<std::string>& environment = {});

  const std::string name;
  std::uint16_t data_port = 0;
  std::uint16_t http_port = 0;
  Process process;

  [[nodiscard]] Endpoint endpoint() const { return {"127.0.0.1", data_port}; }
  [[nodiscard]] nlohmann::json health() const;
  [[nodiscard]] nlohmann::json lanes() const;
  /// Returns the sum of all samples of tributary_aggregator_<name>, or only of the samples with `label`.
  [[nodiscard]] double metric(const std::string& metric_name, const std::string& label = {}) const;
  [[nodiscard]] bool takes_joins() const;
  [[nodiscard]] std::uint64_t memory_reserved() const;
  /// Ends the process with SIGTERM; returns its exit code.
  [[nodiscard]] int terminate(std::chrono::milliseconds limit = std::chrono::seconds(20));
};

/// Returns the path of the program.
[[nodiscard]] std::string aggregator_program();

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest();

  /// Starts an aggregator, and waits until it has registered with the fake manager.
  DaemonProcess& aggregator(const std::string& name, std::vector<std::string> arguments = {});
  /// Returns the arguments that aggregator() uses.
  [[nodiscard]] std::vector<std::string> arguments_of(const std::string& name) const;

  [[nodiscard]] TokenClaims claims_of(const std::string& aggregator, std::uint16_t child, std::uint16_t children) const;
  [[nodiscard]] Bytes join_of(const std::vector<TokenClaims>& chain) const;
  Child& child(const Endpoint& to, const Bytes& join);
  /// Returns the children of a lane on one root, joined and ready. Each call uses the next epoch.
  std::vector<Child*> lane_of(const DaemonProcess& root, std::uint16_t children);
  /// Starts a rank as a process of its own.
  std::unique_ptr<Process> rank_process(const DaemonProcess& root, std::uint16_t child, std::uint16_t children);
  bool run_until(const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(15));
  /// Lets both ranks contribute one segment, and checks that both get the sum.
  void expect_serves(const DaemonProcess& root);

  TemporaryFolder folder_;
  FakeManager manager_;
  transport::TcpTransport transport_;
  std::uint32_t epoch_ = kEpoch;
  std::map<std::string, std::unique_ptr<DaemonProcess>> daemons_;
  std::deque<std::unique_ptr<Child>> children_;
};

}  // namespace tributary::aggregator::test

#pragma once
// tributary-manager as a real process, and a TCP connection that says to it what the test wants.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tributary/manager_client/manager_client.h"

namespace tributary::manager {

/// A folder of its own that goes with it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes it and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

struct Ended {
  int exit_code = -1;  // -1: by a signal
  std::string standard_output;
  std::string standard_error;
};

/// Killed, if it still runs, when this goes.
class ManagerProcess {
 public:
  /// `environment` as "NAME=value", besides what the test has.
  explicit ManagerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});
  ~ManagerProcess();
  ManagerProcess(const ManagerProcess&) = delete;
  ManagerProcess& operator=(const ManagerProcess&) = delete;

  /// With --listen on a free port of loopback and this state directory; waits until it serves.
  static std::unique_ptr<ManagerProcess> serving(const std::string& state_directory,
                                                 std::vector<std::string> more = {});
  /// The ready line; throws with its standard error when it ends before.
  nlohmann::json wait_ready();
  void signal(int number) const;
  /// Until it has ended.
  Ended wait();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] manager_client::ManagerClient client(const std::string& token) const;
  /// With the token of the aggregators, or of the jobs, from the state directory.
  [[nodiscard]] manager_client::ManagerClient for_aggregators() const;
  [[nodiscard]] manager_client::ManagerClient for_jobs() const;

 private:
  int pid_ = -1;
  int output_ = -1;
  std::string error_path_;
  std::string read_so_far_;
  std::uint16_t port_ = 0;
  nlohmann::json ready_;
};

/// Runs it to its end.
Ended run_manager(const std::vector<std::string>& arguments);

/// A plain TCP connection to loopback.
class Connection {
 public:
  explicit Connection(std::uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// False when the other side has closed.
  bool send(const std::string& bytes) const;
  /// One answer: the head, and as much body as it announces. Empty when the connection ended first, or after `limit`.
  std::string answer(std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// Whether the other side closes within `limit`.
  bool closes_within(std::chrono::milliseconds limit);

 private:
  bool more(std::chrono::milliseconds limit);
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace tributary::manager

#pragma once
// Runs tributary-manager as a real process, and gives the test a TCP connection to it.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tributary/manager_client/manager_client.h"

namespace tributary::manager {

/// A new folder, which the destructor deletes.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

struct Ended {
  int exit_code = -1;  // -1: ended by a signal
  std::string standard_output;
  std::string standard_error;
};

/// The destructor kills the process if it still runs.
class ManagerProcess {
 public:
  /// The program gets the test's environment and `environment`, which has texts of the form "NAME=value".
  explicit ManagerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});
  ~ManagerProcess();
  ManagerProcess(const ManagerProcess&) = delete;
  ManagerProcess& operator=(const ManagerProcess&) = delete;

  /// Starts a manager with --listen on a free loopback port and this state directory; waits until it serves.
  static std::unique_ptr<ManagerProcess> serving(const std::string& state_directory,
                                                 std::vector<std::string> more = {});
  /// Waits for the ready line, and returns it; throws with the standard error if the process ends before.
  nlohmann::json wait_ready();
  void signal(int number) const;
  /// Returns the text that the process has written to its standard error so far.
  [[nodiscard]] std::string log() const { return read_file(error_path_); }
  /// Waits until the process has ended.
  Ended wait();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] manager_client::ManagerClient client(const std::string& token) const;
  /// Return clients with the token of the aggregators, or of the jobs, from the state directory.
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

/// Runs the program until it ends.
Ended run_manager(const std::vector<std::string>& arguments);

/// A plain TCP connection to loopback.
class Connection {
 public:
  explicit Connection(std::uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Returns false if the other side has closed.
  bool send(const std::string& bytes) const;
  /// Returns one answer: the head, and as much body as it announces. Empty if the connection ended first, or after
  /// `limit`.
  std::string answer(std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// Returns whether the other side closes within `limit`.
  bool closes_within(std::chrono::milliseconds limit);

 private:
  bool more(std::chrono::milliseconds limit);
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace tributary::manager

#include "tests/system/nccl/check_ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "client/cli/cluster/machine.h"

namespace tributary::nccl_test {
namespace {

using std::chrono::steady_clock;

}  // namespace

CheckRanks::CheckRanks(std::uint32_t ranks, const std::vector<std::string>& arguments, const std::string& folder,
                       const cli::LocalCluster* cluster, const cli::Environment& variables) {
  const auto port = cli::free_port();
  if (!port) throw std::runtime_error(port.error().message);
  std::vector<std::string> command{TRIBUTARY_NCCL_CHECK, "--plugin", TRIBUTARY_NCCL_PLUGIN};
  command.insert(command.end(), arguments.begin(), arguments.end());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    cli::Environment environment = cli::current_environment();
    environment.erase("TRIBUTARY_MANAGER");
    environment.erase("TRIBUTARY_CONFIG");
    environment["RANK"] = std::to_string(rank);
    environment["WORLD_SIZE"] = std::to_string(ranks);
    environment["MASTER_ADDR"] = "127.0.0.1";
    environment["MASTER_PORT"] = std::to_string(*port);
    environment["NCCL_DEBUG"] = "INFO";
    if (cluster != nullptr) cluster->add_to(environment, rank);
    for (const auto& [name, value] : variables) environment[name] = value;
    logs_.push_back(folder + "/check-" + std::to_string(rank) + ".log");
    const int log = open(logs_.back().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    auto process = cli::ChildProcess::spawn({command, std::move(environment), log, log});
    if (log >= 0) close(log);
    if (!process) throw std::runtime_error(process.error().message);
    processes_.push_back(std::move(*process));
  }
}

bool CheckRanks::all_good(std::chrono::seconds limit) {
  const auto deadline = steady_clock::now() + limit;
  bool good = true;
  for (cli::ChildProcess& process : processes_) {
    const auto& status = process.wait_until(deadline);
    good = good && status && status->good();
  }
  return good;
}

bool CheckRanks::wait_for(const std::string& text, std::chrono::seconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (steady_clock::now() < deadline) {
    bool all_ended = true;
    for (cli::ChildProcess& process : processes_) all_ended = process.poll() && all_ended;
    if (output().find(text) != std::string::npos) return true;
    if (all_ended) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::string CheckRanks::output() const {
  std::ostringstream all;
  for (const std::string& path : logs_) all << std::ifstream(path).rdbuf();
  return all.str();
}

}  // namespace tributary::nccl_test

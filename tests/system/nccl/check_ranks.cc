#include "tests/system/nccl/check_ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "client/cli/cluster/machine.h"
#include "client/cli/free_port/free_port.h"

namespace tributary::nccl_test {
namespace {

using std::chrono::steady_clock;

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

/// Returns the interface with one of the `addresses`, which are separated by blanks; `turn` chooses which one.
std::string interface_of(const std::string& addresses, std::uint32_t turn) {
  std::istringstream in(addresses);
  const std::vector<std::string> list(std::istream_iterator<std::string>(in), {});
  ifaddrs* raw = nullptr;
  if (list.empty() || getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> all(raw);
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    std::array<char, INET_ADDRSTRLEN> text{};
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text.data(), text.size());
    if (list[turn % list.size()] == text.data()) return one->ifa_name;
  }
  return {};
}

}  // namespace

CheckRanks::CheckRanks(std::uint32_t ranks, const std::vector<std::string>& arguments, const std::string& folder,
                       const cli::LocalCluster* cluster, const cli::Environment& variables,
                       const std::map<std::uint32_t, cli::Environment>& of_one, const std::string& plugin) {
  const auto port = cli::free_port();
  if (!port) throw std::runtime_error(port.error().message);
  std::vector<std::string> command{TRIBUTARY_NCCL_CHECK, "--plugin",
                                   plugin.empty() ? std::string(TRIBUTARY_NCCL_PLUGIN) : plugin};
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
    environment["TSAN_OPTIONS"] += " suppressions=" TRIBUTARY_NCCL_SUPPRESSIONS;
    // On simulated hosts each rank has its own device.
    if (const auto hosts = environment.find("RDMA_HOSTS"); hosts != environment.end()) {
      environment["TRIBUTARY_IFNAME"] = interface_of(hosts->second, rank);
    }
    if (cluster != nullptr) cluster->add_to(environment, rank);
    for (const auto& [name, value] : variables) environment[name] = value;
    if (const auto own = of_one.find(rank); own != of_one.end()) {
      for (const auto& [name, value] : own->second) environment[name] = value;
    }
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
    if (output().contains(text)) return true;
    if (all_ended) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

void CheckRanks::kill_while_others_wait(std::uint32_t rank, std::chrono::milliseconds wait) {
  processes_.at(rank).signal(SIGSTOP);
  std::this_thread::sleep_for(wait);
  processes_.at(rank).kill();
}

std::optional<cli::ExitStatus> CheckRanks::end_of(std::uint32_t rank, std::chrono::seconds limit) {
  return processes_.at(rank).wait_until(steady_clock::now() + limit);
}

std::string CheckRanks::output() const {
  std::ostringstream all;
  for (const std::string& path : logs_) all << std::ifstream(path).rdbuf();
  return all.str();
}

std::string CheckRanks::output_of(std::uint32_t rank) const {
  std::ostringstream one;
  one << std::ifstream(logs_.at(rank)).rdbuf();
  return one.str();
}

}  // namespace tributary::nccl_test

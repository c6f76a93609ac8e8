#pragma once
// A program in MPI over libtributary-mpi, and what it prints.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "tests/system/chaos/workshop.h"

namespace tributary::mpi_test {

using chaos::Workshop;
using std::chrono::seconds;
using std::chrono::steady_clock;

inline constexpr seconds kLimit{100};
inline constexpr std::uint32_t kRanks = 4;

/// The ranks of one program under mpirun, each on a host of its own in the topology.
class Job {
 public:
  Job(Workshop& workshop, const cli::LocalCluster* cluster, const std::string& program_and_arguments,
      const cli::Environment& variables = {}, const std::string& library = MPI_LIBRARY)
      : log_(workshop.folder() + "/mpi.log") {
    cli::Environment environment = cli::current_environment();
    environment.erase("TRIBUTARY_MANAGER");
    environment["OMPI_ALLOW_RUN_AS_ROOT"] = environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
    environment["TRIBUTARY_MPI_MIN_BYTES"] = "1K";
    environment["TRIBUTARY_MPI_REPORT"] = "1";
    environment["TRIBUTARY_LOCAL"] = environment["TRIBUTARY_TUNING"] = "off";
    std::string hosts;
    if (cluster != nullptr) {
      cluster->add_to(environment, 0);
      for (const std::string& host : cluster->layout().host_of_rank) hosts += host + " ";
    }
    for (const auto& [name, value] : variables) environment[name] = value;
    const std::string rank = "set -- " + hosts + "; shift ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; TRIBUTARY_HOST_ID=$1 " +
                             "LD_PRELOAD=" + library + " exec " + program_and_arguments;
    std::vector<std::string> command{MPI_RUN};
    // Open MPI's vector code saturates sums of small integers, and it counts cores.
    if (kOpenMpi) command.insert(command.end(), {"--oversubscribe", "--bind-to", "none", "--mca", "op", "^avx"});
    command.insert(command.end(), {"-np", std::to_string(kRanks), "sh", "-c", cluster == nullptr ? bare(rank) : rank});
    const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    auto process = cli::ChildProcess::spawn({command, std::move(environment), log, log, workshop.guardian()});
    if (log >= 0) close(log);
    if (!process) throw std::runtime_error(process.error().message);
    process_.emplace(std::move(*process));
  }

  static constexpr bool kOpenMpi = std::string_view(MPI_NAME) == "openmpi";

  [[nodiscard]] bool good() {
    const auto& status = process_->wait_until(steady_clock::now() + kLimit);
    return status && status->good();
  }
  [[nodiscard]] std::string output() const {
    std::ostringstream text;
    text << std::ifstream(log_).rdbuf();
    return text.str();
  }
  [[nodiscard]] bool wait_for(const std::string& text) {
    const auto deadline = steady_clock::now() + kLimit;
    while (steady_clock::now() < deadline && !process_->poll() && !output().contains(text)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return output().contains(text);
  }
  /// Waits until the program has printed this text twice more: a round may have begun before the call.
  [[nodiscard]] bool wait_for_more(const std::string& text);

 private:
  /// Returns the command without a host's name.
  static std::string bare(const std::string& rank) { return rank.substr(rank.find("LD_PRELOAD")); }

  std::string log_;
  std::optional<cli::ChildProcess> process_;
};

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

inline bool Job::wait_for_more(const std::string& text) {
  const std::size_t before = count(output(), text);
  const auto deadline = steady_clock::now() + kLimit;
  while (steady_clock::now() < deadline && !process_->poll() && count(output(), text) < before + 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return count(output(), text) >= before + 2;
}

/// Returns the bytes that the report names: in the network, or otherwise.
inline std::uint64_t reported_bytes(const std::string& output, const std::string& before) {
  const auto line = output.find("bytes of Tributary's calls: ");
  const auto at = line == std::string::npos ? line : output.find(before, line);
  return at == std::string::npos ? 0 : std::stoull(output.substr(at + before.size()));
}

}  // namespace tributary::mpi_test

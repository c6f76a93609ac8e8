#include "client/cli/perf/launch.h"

#include <array>
#include <charconv>
#include <optional>

namespace tributary::cli {
namespace {

constexpr std::uint32_t kRanksMax = 1U << 17;

/// The names of a launcher's variables; nullptr: the launcher has no such variable.
struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* rank_here;   // number of this rank among the ranks on this host
  const char* ranks_here;  // number of ranks on this host
  const char* job;
};

constexpr std::array kLaunchers{
    Launcher{"torchrun or tributary run", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
             "TORCHELASTIC_RUN_ID"},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    Launcher{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_ID"},
    Launcher{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
             "MV2_COMM_WORLD_LOCAL_SIZE", nullptr},
    Launcher{"PMIx under Slurm", "PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID"},
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID"},
};

std::string text_of(const GetVariable& variable, const char* name) {
  const char* value = name == nullptr ? nullptr : variable(name);
  return value == nullptr ? std::string() : value;
}

Result<std::uint32_t> number_of(const GetVariable& variable, const char* name, std::uint32_t low, std::uint32_t high) {
  const std::string text = text_of(variable, name);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    return fail(Errc::bad_config, std::string(name) + " is '" + text + "'; it must be a number from " +
                                      std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

const Launcher* find_launcher(const GetVariable& variable) {
  for (const Launcher& one : kLaunchers) {
    if (variable(one.rank) != nullptr && variable(one.ranks) != nullptr) return &one;
  }
  return nullptr;
}

/// True if torchrun's own store uses this port, so that rank 0 cannot listen there.
bool is_port_taken_by_torchrun(const GetVariable& variable) {
  return text_of(variable, "TORCHELASTIC_USE_AGENT_STORE") == "True";
}

Result<std::uint16_t> master_port(const GetVariable& variable) {
  if (variable("MASTER_PORT") == nullptr) return kMasterPortDefault;
  const auto port = number_of(variable, "MASTER_PORT", 1, 65534);
  if (!port) return std::unexpected(port.error());
  return static_cast<std::uint16_t>(*port + (is_port_taken_by_torchrun(variable) ? 1 : 0));
}

std::string master_host(const GetVariable& variable, const Launcher& launcher, std::uint32_t ranks) {
  if (std::string host = text_of(variable, "MASTER_ADDR"); !host.empty()) return host;
  if (text_of(variable, launcher.ranks_here) == std::to_string(ranks)) return "127.0.0.1";
  if (launcher.ranks != std::string_view("SLURM_NTASKS")) return {};
  const std::string step = text_of(variable, "SLURM_STEP_NODELIST");
  return first_of_node_list(step.empty() ? text_of(variable, "SLURM_NODELIST") : step);
}

}  // namespace

std::string first_of_node_list(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  std::string name = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return name;
  return name + list.substr(end + 1, list.find_first_of("-,]", end) - end - 1);
}

Result<Launch> detect_launch(const GetVariable& variable) {
  const Launcher* launcher = find_launcher(variable);
  if (launcher == nullptr) return Launch{.launcher = "none", .master_port = kMasterPortDefault};
  const auto ranks = number_of(variable, launcher->ranks, 1, kRanksMax);
  if (!ranks) return std::unexpected(ranks.error());
  const auto rank = number_of(variable, launcher->rank, 0, *ranks - 1);
  if (!rank) return std::unexpected(rank.error());
  const bool knows_local = !text_of(variable, launcher->rank_here).empty();
  const auto local_rank = knows_local ? number_of(variable, launcher->rank_here, 0, *ranks - 1) : rank;
  if (!local_rank) return std::unexpected(local_rank.error());
  const auto port = master_port(variable);
  if (!port) return std::unexpected(port.error());
  return Launch{.launcher = launcher->name,
                .rank = *rank,
                .ranks = *ranks,
                .local_rank = *local_rank,
                .master_host = master_host(variable, *launcher, *ranks),
                .master_port = *port,
                .job = text_of(variable, launcher->job)};
}

}  // namespace tributary::cli

#pragma once
// Finds the rank of this process by the variables of its launcher.
#include <cstdint>
#include <functional>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

struct Launch {
  std::string launcher;  // name for people: "torchrun or tributary run", "Open MPI", ...
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t local_rank = 0;  // number among the ranks of this host; `rank` if no variable tells it
  std::string master_host;       // host of rank 0; empty: no variable names it
  std::uint16_t master_port;     // port at which rank 0 distributes the unique id
  std::string job;               // tells two jobs on one port apart; may be empty
};

inline constexpr std::uint16_t kMasterPortDefault = 29500;

/// A function that returns the value of a variable, or nullptr.
using GetVariable = std::function<const char*(const char*)>;

/// Finds the launcher; tries in this order: RANK and WORLD_SIZE (torchrun, tributary run), Open MPI, PMI (MPICH, Intel
/// MPI), MVAPICH, PMIx and Slurm. Without a launcher, this is the only rank. Errc::bad_config names the variable that
/// is missing or has no valid number.
[[nodiscard]] Result<Launch> detect_launch(const GetVariable& variable);

/// Returns the first name of a Slurm node list: "gpu03" of "gpu[03-07,9],login1".
[[nodiscard]] std::string first_of_node_list(const std::string& list);

}  // namespace tributary::cli

#pragma once
// Finds this process's rank, from the variables of its launcher.
#include <cstdint>
#include <functional>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

struct Launch {
  std::string launcher;  // for people: "torchrun or tributary run", "Open MPI", ...
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::string master_host;    // rank 0's host; empty: no variable names it
  std::uint16_t master_port;  // the port where rank 0 hands out the unique id
  std::string job;            // tells two jobs on one port apart; may be empty
};

inline constexpr std::uint16_t kMasterPortDefault = 29500;

/// Returns the value of a variable, or nullptr.
using GetVariable = std::function<const char*(const char*)>;

/// Looks for, in this order: RANK and WORLD_SIZE (torchrun, tributary run), Open MPI, PMI (MPICH, Intel MPI), MVAPICH,
/// PMIx and Slurm. Without any of them this is the only rank. Errc::bad_config names the variable that is missing or
/// holds no valid number.
[[nodiscard]] Result<Launch> detect_launch(const GetVariable& variable);

/// Returns the first name of a Slurm node list: of "gpu[03-07,9],login1", "gpu03".
[[nodiscard]] std::string first_of_node_list(const std::string& list);

}  // namespace tributary::cli

#pragma once
// Which rank this process is, by the variables of whatever launched it.
#include <cstdint>
#include <functional>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

struct Launch {
  std::string launcher;  // for people: "torchrun or tributary run", "Open MPI", ...
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::string master_host;    // where rank 0 is; empty when nothing says so
  std::uint16_t master_port;  // where rank 0 hands out the unique id
  std::string job;            // tells two jobs on one port apart; may be empty
};

inline constexpr std::uint16_t kMasterPortDefault = 29500;

/// The value of a variable, or nullptr.
using GetVariable = std::function<const char*(const char*)>;

/// In this order: RANK and WORLD_SIZE (torchrun, tributary run), Open MPI, PMI (MPICH, Intel MPI), MVAPICH, PMIx and
/// Slurm. None of them: the only rank. Errc::bad_config names the variable that is missing or holds no such number.
[[nodiscard]] Result<Launch> detect_launch(const GetVariable& variable);

/// The first name of a Slurm node list: "gpu[03-07,9],login1" is "gpu03".
[[nodiscard]] std::string first_of_node_list(const std::string& list);

}  // namespace tributary::cli

#pragma once
// One measurement of a pair of hosts, in the form in which a rank sends it to rank 0.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/meter/figures.h"

namespace tributary::cli::fabric {

struct PairRecord {
  std::uint32_t from = 0, to = 0;  // numbers of hosts; equal in an empty record
  std::uint32_t mtu_here = 0;      // MTU of the sender's interface
  meter::Way way{};
  std::array<char, 96> trouble{};  // reason why `way` has no figures
  [[nodiscard]] bool measured() const noexcept { return trouble.front() == '\0'; }
};

struct FabricHost {
  std::string name;
  std::string interface;
  double line_rate = 0;  // bits a second; 0: not known
};

struct FabricReport {
  std::vector<FabricHost> hosts;
  std::vector<PairRecord> pairs;
};

}  // namespace tributary::cli::fabric

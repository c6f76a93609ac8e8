#pragma once
// Runs `tributary run`: it makes a whole cluster on this machine for one command.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tributary::cli {

/// The settings for hosts in namespaces, one for each rank and for each part of the service.
struct RunHosts {
  std::uint64_t link_bits = 0;
  std::uint64_t aggregator_link_bits = 0;  // rate of an aggregator's link; 0: as fast as this machine
  std::vector<std::uint64_t> bytes;        // sizes of a comparison; empty: chosen by the link's rate
  std::string picture;                     // file for the picture of the comparison; empty: none
  std::string python;                      // an interpreter with PyTorch; empty: find one
};

struct RunOptions {
  std::uint32_t ranks = 1;
  std::optional<RunHosts> hosts;  // set: each rank has its own host; nullopt: all are on this host
  std::int64_t aggregators = -1;  // -1: as many as the levels need; 0: no service
  std::uint32_t levels = 0;       // 0: chosen by the numbers of ranks and aggregators
  std::uint32_t lanes = 0;        // 0: auto
  std::uint32_t addresses = 1;    // addresses of each aggregator
  bool prefix = false;
  bool keep = false;
  bool verbose = false;
  double grace_seconds = 5;
  std::vector<std::string> command;  // empty, with hosts: run a comparison
};

/// Returns the exit code of the process.
[[nodiscard]] int run(const RunOptions& options);

}  // namespace tributary::cli

#pragma once
// Runs `tributary verify-bits`, which compares the bits of exact sums with each rank's own exact sums.
#include <cstdint>
#include <string>

namespace tributary::cli {

struct VerifyOptions {
  std::uint64_t elements_max = 1U << 16;  // elements of the largest call
  std::uint32_t rounds = 1;
  std::uint64_t seed = 1;
  std::string id_file;
  double meet_seconds = 60;
  bool require_in_network = false;  // fail if the job has no trees
};

/// Returns the exit code of the process.
[[nodiscard]] int verify_bits(const VerifyOptions& options);

}  // namespace tributary::cli

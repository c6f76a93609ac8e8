#pragma once
// Finds the causes of bad measurements of pairs: a host, if most of its pairs in one direction are bad, else the way
// between two hosts.
#include <cstdint>
#include <vector>

namespace tributary::cli::fabric {

struct Verdict {
  std::uint32_t from = 0, to = 0;  // numbers of hosts
  bool bad = false;
};

struct Culprits {
  std::vector<std::uint32_t> senders, receivers;  // hosts whose link out, or in, is bad
  std::vector<std::uint32_t> pairs;               // indices of bad verdicts that no host explains
};

/// Blames first the host with the greatest part of bad pairs, and ignores its pairs from then on. It blames a host
/// only for at least two bad pairs, and more than half of its pairs: so it blames none of only two hosts.
[[nodiscard]] Culprits find_culprits(const std::vector<Verdict>& verdicts, std::uint32_t hosts);

}  // namespace tributary::cli::fabric

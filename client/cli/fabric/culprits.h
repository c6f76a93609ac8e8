#pragma once
// Finds who is to blame for bad measurements of pairs: a host, where most of its pairs in one direction are bad, else
// the way between two.
#include <cstdint>
#include <vector>

namespace tributary::cli::fabric {

struct Verdict {
  std::uint32_t from = 0, to = 0;  // numbers of hosts
  bool bad = false;
};

struct Culprits {
  std::vector<std::uint32_t> senders, receivers;  // hosts whose link is bad in that direction
  std::vector<std::uint32_t> pairs;               // places in the list of verdicts that no host explains
};

/// Blames the host whose pairs are bad most often first, and then takes its pairs for explained. A host needs two bad
/// pairs, and more than half of its pairs: of two hosts alone, neither can be blamed.
[[nodiscard]] Culprits find_culprits(const std::vector<Verdict>& verdicts, std::uint32_t hosts);

}  // namespace tributary::cli::fabric

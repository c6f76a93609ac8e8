#pragma once
// The switches of a Slurm configuration, from either of its two files, and the fabric that they make.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Expands a host list as Slurm writes it: "tux[0-3,12,18-20],login", a name may have several brackets
/// ("rack[0-1]node[00-15]"). Adds to `names`. Errc::bad_config names the mistake; more than names_max names are a
/// mistake, too.
[[nodiscard]] Status expand_hostlist(std::string_view text, std::size_t names_max, std::vector<std::string>& names);

/// A switch or a block: the content of its line or entry, with ranges expanded.
struct SlurmSwitch {
  std::string name;
  std::size_t line = 0;
  std::vector<std::string> switches;  // names of the switches below it
  std::vector<std::string> nodes;
  std::uint64_t link_bits_per_second = 0;  // rate to each of these; 0: not known
};

struct SlurmTree {
  std::vector<SlurmSwitch> switches;
  bool blocks = false;       // `switches` are blocks, and their connections are not described
  std::size_t children = 0;  // number of children of all switches
};

/// Gives every switch its level, and joins blocks by an added switch above them. Adds errors to `notes`: switches that
/// appear twice, that are unknown, or that are below themselves; too many levels.
void join_slurm_tree(const SlurmTree& tree, ImportNotes& notes, FoundFabric& fabric);

}  // namespace tributary::manager

#pragma once
// The switches of a Slurm configuration, from either of its two files, and the fabric that they make.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Expands a host list as Slurm writes it: "tux[0-3,12,18-20],login", with several brackets in a name where wanted
/// ("rack[0-1]node[00-15]"). Adds to `names`. Errc::bad_config says what is wrong, also for more than names_max names.
[[nodiscard]] Status expand_hostlist(std::string_view text, std::size_t names_max, std::vector<std::string>& names);

/// A switch, or a block: what its line or entry says, with ranges expanded.
struct SlurmSwitch {
  std::string name;
  std::size_t line = 0;
  std::vector<std::string> switches;  // below it
  std::vector<std::string> nodes;
  std::uint64_t link_bits_per_second = 0;  // to all of these; 0: not known
};

struct SlurmTree {
  std::vector<SlurmSwitch> switches;
  bool blocks = false;       // `switches` are blocks: nothing is said of what joins them
  std::size_t children = 0;  // of all switches
};

/// Gives every switch its level, and joins blocks by a switch of their own above them. Errors are added to `notes`:
/// switches that stand twice, that are unknown, or that lie below themselves; too many levels.
void join_slurm_tree(const SlurmTree& tree, ImportNotes& notes, FoundFabric& fabric);

}  // namespace tributary::manager

#include "tree-manager/topology/import/slurm_tree.h"

#include <algorithm>
#include <unordered_map>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {
namespace {

constexpr const char* kBlocksRoot = "between-blocks";

class Joiner {
 public:
  Joiner(const SlurmTree& tree, ImportNotes& notes, FoundFabric& fabric)
      : tree_(tree), notes_(notes), fabric_(fabric), table_(fabric), levels_(tree.switches.size(), 0) {
    fabric_.links_are_cables = false;
  }

  void join() {
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      const SlurmSwitch& it = tree_.switches[i];
      if (!numbers_.emplace(it.name, i).second) notes_.wrong(it.line, "the switch '" + it.name + "' stands here twice");
    }
    for (std::uint32_t i = 0; i < tree_.switches.size() && !notes_.any_wrong(); ++i) static_cast<void>(level_of(i, 1));
    if (notes_.any_wrong()) return;
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      add({.name = tree_.switches[i].name, .distinct = {}, .is_switch = true, .level = levels_[i]});
    }
    for (std::uint32_t i = 0; i < tree_.switches.size() && !notes_.any_wrong(); ++i) link_children(i);
    if (tree_.blocks && tree_.switches.size() > 1) join_blocks();
  }

 private:
  /// Returns 1 for a switch without switches below it. `depth` is the depth of the call, which bounds the recursion.
  std::uint32_t level_of(std::uint32_t index, std::uint32_t depth) {
    const SlurmSwitch& it = tree_.switches[index];
    if (levels_[index] != 0) return levels_[index];
    if (depth > kSwitchLevelsMax) {
      notes_.wrong(it.line, "more than " + std::to_string(kSwitchLevelsMax) + " levels of switches end at '" + it.name +
                                "', or it lies below itself");
      return 0;
    }
    std::uint32_t below = 0;
    for (const std::string& name : it.switches) {
      const auto found = numbers_.find(name);
      if (found == numbers_.end()) {
        notes_.wrong(it.line, "the switch '" + name + "' below '" + it.name + "' has no line of its own");
      } else {
        below = std::max(below, level_of(found->second, depth + 1));
      }
      if (notes_.any_wrong()) return 0;
    }
    return levels_[index] = below + 1;
  }

  std::uint32_t add(FoundNode node) {
    const std::string key = (node.is_switch ? "switch " : "host ") + node.name;
    const auto index = table_.add(key, std::move(node));
    if (!index) notes_.wrong(0, index.error().message);
    return index.value_or(0);
  }

  void link(const SlurmSwitch& above, std::uint32_t a, std::uint32_t b, std::uint64_t rate) {
    if (auto ok = table_.link(a, b, rate); !ok) notes_.wrong(above.line, ok.error().message);
  }

  void link_children(std::uint32_t index) {
    const SlurmSwitch& it = tree_.switches[index];
    for (const std::string& name : it.switches) link(it, numbers_.at(name), index, it.link_bits_per_second);
    for (const std::string& name : it.nodes) {
      if (notes_.any_wrong()) return;
      const std::uint32_t host = add({.name = name, .distinct = {}, .is_switch = false, .level = 0});
      if (!notes_.any_wrong()) link(it, host, index, it.link_bits_per_second);
    }
  }

  void join_blocks() {
    const std::uint32_t root = add({.name = kBlocksRoot, .distinct = {}, .is_switch = true, .level = 2});
    for (std::uint32_t i = 0; i < tree_.switches.size() && !notes_.any_wrong(); ++i)
      link(tree_.switches[i], i, root, 0);
    fabric_.warnings.push_back(std::string("blocks say nothing of the switches between them: '") + kBlocksRoot +
                               "' stands for all of these");
  }

  const SlurmTree& tree_;
  ImportNotes& notes_;
  FoundFabric& fabric_;
  NodeTable table_;
  std::vector<std::uint32_t> levels_;  // 0: not known yet
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

void join_slurm_tree(const SlurmTree& tree, ImportNotes& notes, FoundFabric& fabric) {
  Joiner(tree, notes, fabric).join();
}

}  // namespace tributary::manager

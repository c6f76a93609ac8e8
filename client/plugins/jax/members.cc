#include "client/plugins/jax/members.h"

#include <algorithm>
#include <cstddef>

#include "client/plugins/jax/abi.h"

namespace tributary::jax {

Members members_of(std::span<const SplitArguments> all, int rank) {
  Members found;
  const SplitArguments& mine = all[static_cast<std::size_t>(rank)];
  if (mine.color == kUndefined) return found;
  const auto key_of = [all](int one) { return all[static_cast<std::size_t>(one)].key; };
  for (std::size_t one = 0; one < all.size(); ++one) {
    if (all[one].color == mine.color) found.ranks.push_back(static_cast<int>(one));
  }
  std::ranges::stable_sort(found.ranks, {}, key_of);
  found.rank = static_cast<int>(std::ranges::find(found.ranks, rank) - found.ranks.begin());
  for (std::size_t place = 0; place < found.ranks.size(); ++place) {
    const int key = key_of(found.ranks[place]);
    if (key == static_cast<int>(place)) continue;
    found.refusal = "process " + std::to_string(found.ranks[place]) + " takes part as rank " + std::to_string(key) +
                    " of a communicator of " + std::to_string(found.ranks.size()) +
                    " processes that begins with device " + std::to_string(mine.color) +
                    "; all processes must run the same program, with one device each (jax_num_cpu_devices = 1)";
    break;
  }
  return found;
}

}  // namespace tributary::jax

#include "client/control/witnesses.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tributary/protocol/rank_troubles.h"

namespace tributary::client {
namespace {

/// Returns up to kWitnessesMax ranks of other processes that come after `rank`, or before it; after the last rank come
/// the first ones, and before the first rank come the last ones.
std::vector<NeighbourProcess> next_to(std::uint32_t rank, const std::map<std::uint32_t, pid_t>& processes, bool after) {
  std::vector<NeighbourProcess> found;
  auto at = processes.find(rank);
  const auto own = at;
  while (found.size() < kWitnessesMax) {
    if (after) {
      if (++at == processes.end()) at = processes.begin();
    } else {
      at = std::prev(at == processes.begin() ? processes.end() : at);
    }
    if (at == own) break;
    if (at->second != own->second) found.push_back({.rank = at->first, .process = at->second});
  }
  return found;
}

}  // namespace

ProcessPlace own_process_place() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat processes{};
  if (!std::getline(in, boot) || boot.empty() || stat("/proc/self/ns/pid", &processes) != 0) return {};
  return {.space = boot + "/" + std::to_string(processes.st_dev) + ":" + std::to_string(processes.st_ino),
          .number = getpid()};
}

void Witnesses::learn(std::uint32_t rank, const ProcessPlace& place) {
  if (place.space.empty() || place.number <= 0) return;
  if (space_of_.try_emplace(rank, place.space).second) spaces_[place.space].emplace(rank, place.number);
}

std::vector<std::uint32_t> Witnesses::of(std::uint32_t rank) const {
  const auto space = space_of_.find(rank);
  if (space == space_of_.end()) return {};
  std::vector<std::uint32_t> ranks;
  for (const NeighbourProcess& one : next_to(rank, spaces_.at(space->second), true)) ranks.push_back(one.rank);
  return ranks;
}

std::vector<NeighbourProcess> Witnesses::seen_by(std::uint32_t rank) const {
  const auto space = space_of_.find(rank);
  return space == space_of_.end() ? std::vector<NeighbourProcess>() : next_to(rank, spaces_.at(space->second), false);
}

}  // namespace tributary::client

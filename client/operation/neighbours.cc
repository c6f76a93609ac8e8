#include "client/operation/neighbours.h"

#include <algorithm>

namespace tributary::client {

void Neighbours::learn(std::uint32_t rank, pid_t process) {
  all_.push_back({.rank = rank, .process = process});
}

std::optional<Sighting> Neighbours::sight(std::uint32_t rank, TimePoint now) {
  const auto one = std::ranges::find(all_, rank, &One::rank);
  if (one == all_.end() || (one->looked_at && now - *one->looked_at < kPause)) return std::nullopt;
  one->looked_at = now;
  const std::string folder = folder_of_process(one->process);
  one->look.look(rank, folder, now);
  return one->look.sight(rank, folder, now);
}

}  // namespace tributary::client

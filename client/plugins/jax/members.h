#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tributary::jax {

/// The arguments of one rank's MPI_Comm_split.
struct SplitArguments {
  std::int32_t color;
  std::int32_t key;
};

/// The part of a split that one rank belongs to.
struct Members {
  std::vector<int> ranks;  // their numbers in the world, in the new communicator's order
  int rank = 0;            // this rank's number in the new communicator
  std::string refusal;     // why these ranks cannot have a communicator; "" if they can
};

/// Finds the members of this rank's new communicator. A pure function, so all members find the same.
///
/// XLA gives the first device as color and the rank as key. So the keys of a communicator are 0, 1, 2 ... exactly if
/// all its ranks mean the same communicator and each process has one device.
[[nodiscard]] Members members_of(std::span<const SplitArguments> all, int rank);

}  // namespace tributary::jax

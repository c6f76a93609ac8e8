#pragma once

#include <vector>

#include "backend.h"
#include "tributary/tributary.h"

namespace tributary::torch {

/// Lets the ranks meet again without lost ranks later. Collective: each rank calls it at once after the group's start.
void prepare_shrink(Backend& group, const tributary_config& config);

/// Makes the communicator of all ranks but these; the group may have failed. Then aborts the group, because an orderly
/// end would wait for the lost ranks.
[[nodiscard]] tributary_comm* shrink_without(const std::vector<int>& excluded, Backend& group,
                                             const tributary_config& config);

}  // namespace tributary::torch

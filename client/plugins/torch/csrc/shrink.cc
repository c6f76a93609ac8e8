#include "shrink.h"

#include "error.h"

namespace tributary::torch {

void prepare_shrink(Backend& group, const tributary_config& config) {
  group.use([&](tributary_comm* comm) {
    check(tributary_comm_prepare_shrink(comm, &config), "tributary:init_process_group");
  });
}

tributary_comm* shrink_without(const std::vector<int>& excluded, Backend& group, const tributary_config& config) {
  tributary_comm* made = nullptr;
  group.use([&](tributary_comm* comm) {
    const auto count = static_cast<int>(excluded.size());
    check(tributary_comm_shrink(comm, excluded.data(), count, &made, &config), "tributary:shrink_group");
  });
  group.abort();
  return made;
}

}  // namespace tributary::torch

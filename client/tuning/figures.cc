#include "client/tuning/figures.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace tributary::tuning {

std::uint32_t cores_here() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace tributary::tuning

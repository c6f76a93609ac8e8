#include "client/api/io_threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "tributary/transport/link_rate.h"

namespace tributary::client {

namespace {

constexpr std::uint64_t kRatePerThread = 20'000'000'000;
constexpr std::uint32_t kCoresPerThread = 4;
constexpr std::uint32_t kThreadsMax = 8;

/// Returns the number of cores on which the process may run.
std::uint32_t cores_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();
}

}  // namespace

std::uint32_t io_threads_for(std::uint64_t link_rate, std::uint32_t cores) noexcept {
  const std::uint64_t wanted = (link_rate + kRatePerThread - 1) / kRatePerThread;
  const std::uint32_t most = std::clamp(cores / kCoresPerThread, 1U, kThreadsMax);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, most));
}

TcpWish tcp_wish(const ClientSettings& settings, const std::string& own_address) {
  if (settings.io_threads != 0) return {.shared_memory = settings.shared_memory, .io_threads = settings.io_threads};
  const std::uint64_t rate = settings.link_rate != 0 ? settings.link_rate : transport::link_rate_of(own_address);
  return {.shared_memory = settings.shared_memory, .io_threads = io_threads_for(rate, cores_allowed())};
}

}  // namespace tributary::client

#include "client/api/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace tributary::client {
namespace {

std::atomic<std::uint64_t> generation{1};

}  // namespace

std::uint64_t fork_generation() noexcept {
  // The handler stays registered, because it cannot be removed. So the library is linked with -z nodelete: it is never
  // unloaded.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tributary::client

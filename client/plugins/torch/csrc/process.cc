#include "process.h"

#include <pthread.h>

#include <atomic>

namespace tributary::torch {
namespace {

std::atomic<std::uint64_t> generation{1};

}  // namespace

std::uint64_t process_generation() noexcept {
  // Python never unloads an extension, so the handler stays valid.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tributary::torch

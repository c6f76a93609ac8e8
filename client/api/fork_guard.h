#pragma once
// Tells a forked child from its parent. The child has its parent's handles but none of its threads, so it must not use
// the parent's objects.
#include <cstdint>

namespace tributary::client {

/// Returns a number that differs between a process and its forked children. It makes no system call.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

}  // namespace tributary::client

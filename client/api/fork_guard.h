#pragma once
// A forked child has its parent's handles but none of its threads: nothing of the parent's may be used there.
#include <cstdint>

namespace tributary::client {

/// Another number in every process of a line of forks. Cheap: no system call.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

}  // namespace tributary::client

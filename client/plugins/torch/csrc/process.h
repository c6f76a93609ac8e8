#pragma once

#include <cstdint>

namespace tributary::torch {

/// Returns a number that is different in a process and in its forked children. A forked child has its parent's objects
/// but none of their threads. Locks in the child stay as they were at the fork. So the child must not use these
/// objects.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Says whether the running process made the object.
class MadeHere {
 public:
  explicit operator bool() const noexcept { return generation_ == process_generation(); }

 private:
  std::uint64_t generation_ = process_generation();
};

}  // namespace tributary::torch

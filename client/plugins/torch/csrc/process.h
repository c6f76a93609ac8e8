#pragma once

#include <cstdint>

namespace tributary::torch {

/// Returns a number that differs between a process and its forked children. A forked child has its parent's objects but
/// none of their threads, and their locks as they were at that moment: it must not use them.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Tells whether the running process is the one that made the object.
class MadeHere {
 public:
  explicit operator bool() const noexcept { return generation_ == process_generation(); }

 private:
  std::uint64_t generation_ = process_generation();
};

}  // namespace tributary::torch

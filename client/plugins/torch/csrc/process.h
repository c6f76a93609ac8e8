#pragma once

#include <cstdint>

namespace tributary_torch {

/// Another number in every process of a line of forks. A forked child has its parent's objects but none of their
/// threads, and their locks as they were at that moment: it must leave them alone.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Says of an object whether the process that runs is the one that made it.
class MadeHere {
 public:
  explicit operator bool() const noexcept { return generation_ == process_generation(); }

 private:
  std::uint64_t generation_ = process_generation();
};

}  // namespace tributary_torch

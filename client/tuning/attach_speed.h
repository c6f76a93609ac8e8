#pragma once
// Tells whether cross-memory attach is quick on this machine. The kernel takes a reference of each page that it copies,
// and the cost of a reference differs by a factor of ten between machines, most of all between virtual ones.

namespace tributary::tuning {

/// Returns whether the kernel copies from a process's memory (process_vm_readv) at a third of memcpy's rate or faster.
/// At this rate both ways between two ranks of one host take equal time: attach copies each byte once, chunks copy it
/// twice. The first call measures, for a few milliseconds; later calls return its answer. Any thread may call it.
[[nodiscard]] bool attach_is_quick() noexcept;

}  // namespace tributary::tuning

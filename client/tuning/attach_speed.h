#pragma once
// Tells whether cross-memory attach is quick on this machine. The kernel takes a reference of each page that it copies,
// and the cost of a reference differs by a factor of ten between machines, most of all between virtual ones.

namespace tributary::tuning {

/// Returns whether two ranks of one host should use attach, if memcpy takes `by_process` for some bytes and the kernel
/// takes `by_kernel`. Attach copies each byte once, and chunks copy it twice; the second copy also waits for the cache
/// of the other core. Measurements put the break-even near a factor of three between both times.
[[nodiscard]] constexpr bool attach_pays(double by_process, double by_kernel) noexcept {
  constexpr double kMostTimesACopy = 3;
  return by_kernel <= kMostTimesACopy * by_process;
}

/// The reason why ranks do not use attach where attach_is_quick() returns false.
inline constexpr const char* kAttachIsSlow = "copies by the kernel are slow, or forbidden, on this machine";

/// Returns whether the kernel copies quickly here; false if it forbids copies from a process's memory
/// (process_vm_readv). The first call measures, for a few milliseconds; later calls return its answer. Any thread may
/// call it.
[[nodiscard]] bool attach_is_quick() noexcept;

}  // namespace tributary::tuning

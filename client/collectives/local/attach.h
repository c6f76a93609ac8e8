#pragma once
// Reaches other ranks' memory by the kernel's cross-memory attach (process_vm_readv, process_vm_writev): one copy
// straight from process to process, for memory that was not announced. One trial finds out whether the kernel forbids
// it; then the ranks do without.
#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/places.h"

namespace tributary::client::local {

class Attachment {
 public:
  /// `processes` belong to LocalGroup, which keeps them; if they are empty, no memory is ever reached.
  /// `forbidden` is a literal that says why attach shall not be used; nullptr: it may be used. Tells the other ranks
  /// the address at which they can try it.
  Attachment(const Places& places, std::uint32_t rank, std::uint32_t ranks, std::span<const FileDescriptor> processes,
             const char* forbidden);
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// True if this rank reaches all other ranks. False until it has tried all of them.
  [[nodiscard]] bool works() noexcept;
  /// Says, for people, why attach does not work; empty if it works or has not been tried. Any thread.
  [[nodiscard]] const char* why_not() const noexcept { return why_not_.load(std::memory_order_relaxed); }
  /// True if the system can copy this memory, so it is no device's. Touches its first and its last byte.
  [[nodiscard]] static bool can_copy(const std::byte* memory, std::size_t bytes) noexcept;

  // Return errno, 0 if all was copied; ESRCH if the process has ended. They check the process's number right before
  // they use it: the system reuses a number only after all others.
  [[nodiscard]] int read(std::uint32_t rank, std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept;
  [[nodiscard]] int write(std::uint32_t rank, std::uint64_t to, const std::byte* from,
                          std::size_t bytes) const noexcept;

 private:
  [[nodiscard]] bool has_ended(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool tried(std::uint32_t rank) noexcept;

  const Places places_;
  const std::uint32_t rank_, ranks_;
  const std::span<const FileDescriptor> processes_;
  std::vector<pid_t> pids_;
  std::uint64_t probe_ = 0;  // the other ranks try to read this
  std::uint32_t tried_ = 0;  // how many ranks have been tried
  bool possible_;
  std::atomic<const char*> why_not_{""};
};

}  // namespace tributary::client::local

#pragma once
// Reaches other ranks' memory by the kernel's cross-memory attach (process_vm_readv, process_vm_writev): one copy
// straight from process to process, for memory that no rank has announced. One trial shows whether the kernel allows
// it; if not, the ranks do not use it.
#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/places.h"

namespace tributary::client::local {

struct AttachRule {
  const char* forbidden = nullptr;  // a literal that says why this rank must not use attach; nullptr: it may use it
  bool if_quick = false;            // use attach only if this machine's kernel copies quickly
};

class Attachment {
 public:
  /// `processes` belong to LocalGroup, which keeps them; if they are empty, this rank never uses attach. The
  /// constructor tells the other ranks the address at which they can try attach, unless this rank must not use it. It
  /// takes some milliseconds if it is the first in this process that measures the kernel's speed.
  Attachment(const Places& places, std::uint32_t rank, std::uint32_t ranks, std::span<const FileDescriptor> processes,
             const AttachRule& rule);
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// True if this rank reaches all other ranks. False until it has tried all of them.
  [[nodiscard]] bool works() noexcept;
  /// Says, for people, why attach does not work; empty if it works or has not been tried. Any thread may call it.
  [[nodiscard]] const char* why_not() const noexcept { return why_not_.load(std::memory_order_relaxed); }
  /// True if the kernel can copy this memory; false for a device's memory. Touches its first and its last byte.
  [[nodiscard]] static bool can_copy(const std::byte* memory, std::size_t bytes) noexcept;

  // Return 0 if they copied all bytes, else errno; ESRCH: the process has ended. They check right before they copy that
  // the process still lives: the kernel gives its number to a new process only after all other numbers.
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
  std::uint64_t probe_ = 0;  // the value that the other ranks try to read
  std::uint32_t tried_ = 0;  // how many ranks have been tried
  bool possible_;
  std::atomic<const char*> why_not_{""};
};

}  // namespace tributary::client::local

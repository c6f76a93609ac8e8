#pragma once
// Other ranks' memory by the kernel's cross-memory attach (process_vm_readv, process_vm_writev): one copy straight from
// process to process, for memory that nobody has announced. Where the kernel forbids it, which is found out by one
// trial, the ranks do without.
#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/places.h"

namespace tributary::client::local {

class Attachment {
 public:
  /// `processes`: as LocalGroup's, whose they stay; without them, or not `allowed`, nothing is ever reached. Tells the
  /// others by what they can try it.
  Attachment(const Places& places, std::uint32_t rank, std::uint32_t ranks, std::span<const FileDescriptor> processes,
             bool allowed);
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// This rank reaches all others; false, too, as long as they are not all there to be tried.
  [[nodiscard]] bool works() noexcept;
  /// Why not, for people; empty where it works or has not been tried.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  /// The system can copy this: no device's memory. Looks at its first and its last byte.
  [[nodiscard]] static bool can_copy(const std::byte* memory, std::size_t bytes) noexcept;

  // errno, 0 if all was copied; ESRCH: the process has ended. Its number is looked at right before it is used: numbers
  // are given again only after all others have been.
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
  std::uint64_t probe_ = 0;  // what the others try to read
  std::uint32_t tried_ = 0;  // ranks that have been
  bool possible_;
  std::string why_not_;
};

}  // namespace tributary::client::local

#include "client/collectives/local/attach.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "client/tuning/attach_speed.h"

namespace tributary::client::local {
namespace {

/// Returns the process's number in this process's pid namespace; 0: the process has no number there.
pid_t pid_of(const FileDescriptor& process) {
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(process.number()));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pid:")) return static_cast<pid_t>(std::max(0L, std::strtol(line.c_str() + 4, nullptr, 10)));
  }
  return 0;
}

void* address(std::uint64_t at) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
}

}  // namespace

Attachment::Attachment(const Places& places, std::uint32_t rank, std::uint32_t ranks,
                       std::span<const FileDescriptor> processes, const AttachRule& rule)
    : places_(places),
      rank_(rank),
      ranks_(ranks),
      processes_(processes),
      possible_(rule.forbidden == nullptr && processes.size() == ranks) {
  if (rule.forbidden != nullptr) why_not_ = rule.forbidden;
  if (possible_ && rule.if_quick && !tuning::attach_is_quick()) {
    possible_ = false;
    why_not_ = tuning::kAttachIsSlow;
  }
  if (!possible_) return;
  for (std::uint32_t r = 0; r < ranks; ++r) pids_.push_back(r == rank ? getpid() : pid_of(processes[r]));
  while (probe_ == 0) {
    if (getrandom(&probe_, sizeof probe_, 0) != static_cast<ssize_t>(sizeof probe_)) probe_ = 0;
  }
  ProgressLine& mine = places_.progress(rank);
  mine.probe_value = probe_;
  mine.probe_at.store(reinterpret_cast<std::uintptr_t>(&probe_), std::memory_order_release);  // pairs with tried()
}

bool Attachment::works() noexcept {
  while (possible_ && tried_ < ranks_) {
    if (tried_ != rank_ && !tried(tried_)) return false;
    ++tried_;
  }
  return possible_;
}

bool Attachment::tried(std::uint32_t rank) noexcept {
  const ProgressLine& line = places_.progress(rank);
  const std::uint64_t at = line.probe_at.load(std::memory_order_acquire);
  if (at == 0) return false;  // the rank has not come yet, or forbids attach
  std::uint64_t value = 0;
  const int error = pids_[rank] == 0 ? ESRCH : read(rank, reinterpret_cast<std::byte*>(&value), at, sizeof value);
  if (error == 0 && value == line.probe_value) return true;
  possible_ = false;
  why_not_ = error == EPERM ? "the kernel forbids it (ptrace scope, or a sandbox)"
             : error != 0   ? "the kernel does not offer it, or not to these processes"
                            : "another process answers to a rank's number";
  return false;
}

bool Attachment::can_copy(const std::byte* memory, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  std::array<std::byte, 2> seen{};
  iovec here{.iov_base = seen.data(), .iov_len = seen.size()};
  auto* const first = const_cast<std::byte*>(memory);
  const std::array<iovec, 2> ends{{{.iov_base = first, .iov_len = 1}, {.iov_base = first + bytes - 1, .iov_len = 1}}};
  return process_vm_readv(getpid(), &here, 1, ends.data(), ends.size(), 0) == static_cast<ssize_t>(seen.size());
}

bool Attachment::has_ended(std::uint32_t rank) const noexcept {
  pollfd process{.fd = processes_[rank].number(), .events = POLLIN, .revents = 0};
  return poll(&process, 1, 0) > 0 && (process.revents & POLLIN) != 0;
}

int Attachment::read(std::uint32_t rank, std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept {
  if (has_ended(rank)) return ESRCH;
  while (bytes > 0) {
    const iovec here{.iov_base = to, .iov_len = bytes}, there{.iov_base = address(from), .iov_len = bytes};
    const ssize_t n = process_vm_readv(pids_[rank], &here, 1, &there, 1, 0);
    if (n < 0) return errno;
    if (n == 0) return EFAULT;
    to += n, from += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

int Attachment::write(std::uint32_t rank, std::uint64_t to, const std::byte* from, std::size_t bytes) const noexcept {
  if (has_ended(rank)) return ESRCH;
  while (bytes > 0) {
    const iovec here{.iov_base = const_cast<std::byte*>(from), .iov_len = bytes};
    const iovec there{.iov_base = address(to), .iov_len = bytes};
    const ssize_t n = process_vm_writev(pids_[rank], &here, 1, &there, 1, 0);
    if (n < 0) return errno;
    if (n == 0) return EFAULT;
    to += static_cast<std::uint64_t>(n), from += n, bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

}  // namespace tributary::client::local

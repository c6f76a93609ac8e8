#include "tributary/transport/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace tributary::transport {
namespace {

constexpr const char* kWhatToDo =
    "raise RLIMIT_NOFILE: ulimit -n and -Hn in the shell that starts it, LimitNOFILE= in a systemd unit, "
    "--ulimit nofile= for a container";

/// Counts the entries of the kernel's own list; 0 if the list cannot be read.
std::uint64_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir("/proc/self/fd"), &::closedir);
  if (!list) return 0;
  std::uint64_t entries = 0;
  while (::readdir(list.get()) != nullptr) ++entries;
  return entries - std::min<std::uint64_t>(entries, 3);  // ".", ".." and the list itself
}

}  // namespace

DescriptorLimit descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {.soft = UINT64_MAX, .hard = UINT64_MAX};
  return {.soft = limit.rlim_cur, .hard = limit.rlim_max, .open = open_descriptors()};
}

void raise_descriptor_limit(std::uint64_t more) {
  const DescriptorLimit now = descriptor_limit();
  if (now.open + more <= now.soft || now.soft >= now.hard) return;
  const rlimit raised{.rlim_cur = now.hard, .rlim_max = now.hard};
  (void)::setrlimit(RLIMIT_NOFILE, &raised);
}

Status check_descriptors(const DescriptorLimit& limit, std::uint64_t needed, const std::string& what) {
  if (limit.open + needed <= limit.hard) return {};
  return fail(Errc::exhausted, what + " needs " + std::to_string(needed) + " file descriptors, " +
                                   std::to_string(limit.open) + " are open already, and this process may have " +
                                   std::to_string(limit.hard) + " at most: " + kWhatToDo);
}

std::string descriptor_advice(int error) {
  if (error == ENFILE) return " (the system has no more: raise the sysctl fs.file-max)";
  if (error != EMFILE) return {};
  const DescriptorLimit limit = descriptor_limit();
  return " (this process may have " + std::to_string(limit.soft) + " file descriptors, at most " +
         std::to_string(limit.hard) + ": " + kWhatToDo + ")";
}

}  // namespace tributary::transport

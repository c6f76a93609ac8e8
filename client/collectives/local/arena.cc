#include "client/collectives/local/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tributary::client::local {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK;

std::unexpected<Error> call_failed(const char* call) {
  return fail(Errc::io, std::string("shared memory of the ranks of this host: ") + call + ": " + std::strerror(errno));
}

FileDescriptor make_memory(unsigned flags, std::size_t bytes) {
  FileDescriptor descriptor(memfd_create("tributary", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!descriptor.open() || ftruncate(descriptor.number(), static_cast<off_t>(bytes)) != 0) return {};
  return descriptor;
}

/// Asks for all huge pages at once. Otherwise the system would give each page at its first use, and a bus error if no
/// page is free then.
FileDescriptor make_huge_memory(std::size_t bytes) {
  FileDescriptor descriptor = make_memory(MFD_HUGETLB, bytes);
  if (descriptor.open() && fallocate(descriptor.number(), 0, 0, static_cast<off_t>(bytes)) == 0) return descriptor;
  return {};
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this == &other) return *this;
  if (open()) close(number_);
  number_ = other.release();
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (open()) close(number_);
}

int FileDescriptor::release() noexcept {
  return std::exchange(number_, -1);
}

Result<std::shared_ptr<Arena>> Arena::create(std::size_t bytes) {
  const std::size_t whole = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  if (FileDescriptor huge = make_huge_memory(whole); huge.open() && fcntl(huge.number(), F_ADD_SEALS, kSeals) == 0) {
    if (auto arena = map(std::move(huge), whole)) return arena;
  }
  FileDescriptor descriptor = make_memory(0, whole);
  if (!descriptor.open()) return call_failed("memfd_create");
  if (fcntl(descriptor.number(), F_ADD_SEALS, kSeals) != 0) return call_failed("F_ADD_SEALS");
  return map(std::move(descriptor), whole);
}

Result<std::shared_ptr<Arena>> Arena::adopt(FileDescriptor descriptor, std::size_t bytes) {
  struct stat status{};
  if (fstat(descriptor.number(), &status) != 0) return call_failed("fstat");
  const int seals = fcntl(descriptor.number(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || static_cast<std::size_t>(status.st_size) < bytes) {
    return fail(Errc::corrupt,
                "shared memory of the ranks of this host: the memory that rank 0 passed is not sealed, or too small");
  }
  return map(std::move(descriptor), static_cast<std::size_t>(status.st_size));
}

Result<std::shared_ptr<Arena>> Arena::map(FileDescriptor descriptor, std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number(), 0);
  if (at == MAP_FAILED) return call_failed("mmap");
  static_cast<void>(madvise(at, bytes, MADV_HUGEPAGE));  // if the system refuses, small pages serve, too
  static_cast<void>(madvise(at, bytes, MADV_DONTDUMP));
  return std::shared_ptr<Arena>(new Arena(std::move(descriptor), {static_cast<std::byte*>(at), bytes}));
}

Arena::~Arena() {
  munmap(bytes_.data(), bytes_.size());
}

}  // namespace tributary::client::local

#include "transport/shm/ring_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "transport/shm/sealed_file.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kControlBytes = 4096;
constexpr std::size_t kConnectorSideAt = 128;  // two cache lines further, because a core fetches lines in pairs

std::size_t bytes_for(std::size_t ring_bytes) noexcept {
  return kControlBytes + 2 * ring_bytes;
}

std::unexpected<Error> ring_failed(const char* call, int error = errno) {
  const bool no_room = error == EMFILE || error == ENFILE || error == ENOMEM;
  return fail(no_room ? Errc::exhausted : Errc::io,
              std::string("shared memory of a connection: ") + call + ": " + std::strerror(error) + ".");
}

std::size_t whole_huge_pages(std::size_t bytes) noexcept {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

OwnedDescriptor make_memory(unsigned flags, std::size_t bytes) noexcept {
  OwnedDescriptor descriptor(::memfd_create("tributary-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!descriptor.is_open() || ::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) return {};
  return descriptor;
}

/// At the first touch, the system gives a huge page, or a bus error if none is free. So this code asks for all huge
/// pages here.
OwnedDescriptor make_huge_memory(std::size_t bytes) noexcept {
  OwnedDescriptor descriptor = make_memory(MFD_HUGETLB, bytes);
  if (descriptor.is_open() && ::fallocate(descriptor.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return descriptor;
  return {};
}

}  // namespace

Result<std::shared_ptr<RingMemory>> RingMemory::create(std::size_t ring_bytes, bool huge) {
  const std::size_t whole_pages = whole_huge_pages(bytes_for(ring_bytes));
  OwnedDescriptor descriptor = huge ? make_huge_memory(whole_pages) : OwnedDescriptor();
  const bool is_huge = descriptor.is_open();
  if (!is_huge) descriptor = make_memory(0, bytes_for(ring_bytes));
  if (!descriptor.is_open()) return ring_failed("memfd_create");
  if (::fcntl(descriptor.get(), F_ADD_SEALS, kSizeSeals) != 0) return ring_failed("F_ADD_SEALS");
  auto memory =
      map(std::move(descriptor), is_huge ? whole_pages : bytes_for(ring_bytes), ring_bytes, Role::listener, is_huge);
  if (!memory && is_huge) return create(ring_bytes, false);  // the system has huge pages, but not for this process
  if (!memory) return memory;
  for (const Role role : {Role::listener, Role::connector}) (*memory)->side(role).room_at.store(~std::uint64_t{0});
  return memory;
}

Result<std::shared_ptr<RingMemory>> RingMemory::adopt(OwnedDescriptor descriptor, std::size_t ring_bytes) {
  struct stat status{};
  struct statfs file_system{};
  if (::fstat(descriptor.get(), &status) != 0) return ring_failed("fstat");
  if (::fstatfs(descriptor.get(), &file_system) != 0) return ring_failed("fstatfs");
  const bool huge = file_system.f_type == HUGETLBFS_MAGIC;
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  const auto size = static_cast<std::size_t>(status.st_size);
  const bool long_enough = S_ISREG(status.st_mode) && size >= bytes_for(ring_bytes) &&
                           (!huge || size == whole_huge_pages(bytes_for(ring_bytes)));
  if ((!huge && file_system.f_type != TMPFS_MAGIC) || seals < 0 || (seals & kSizeSeals) != kSizeSeals || !long_enough) {
    return fail(Errc::corrupt,
                "shared memory of a connection: what was passed is not sealed, or not of the right size.");
  }
  const std::size_t bytes = huge ? size : bytes_for(ring_bytes);
  return map(std::move(descriptor), bytes, ring_bytes, Role::connector, huge);
}

Result<std::shared_ptr<RingMemory>> RingMemory::map(OwnedDescriptor descriptor, std::size_t bytes,
                                                    std::size_t ring_bytes, Role role, bool huge) {
  TRIBUTARY_ASSERT(std::has_single_bit(ring_bytes) && bytes >= bytes_for(ring_bytes),
                   "two rings of {} bytes are mapped in {}", ring_bytes, bytes);
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (at == MAP_FAILED) return ring_failed("mmap");
  (void)::madvise(at, bytes, MADV_DONTDUMP);
  const std::span all(static_cast<std::byte*>(at), bytes);
  return std::shared_ptr<RingMemory>(new RingMemory(std::move(descriptor), all, ring_bytes, role, huge));
}

RingMemory::~RingMemory() {
  ::munmap(bytes_.data(), bytes_.size());
}

/// A hole that was punched into huge pages before the seal would be a bus error for a reader; a hole in small pages
/// reads as zeros.
Status RingMemory::take_pages() noexcept {
  if (!huge_ || ::fallocate(descriptor_.get(), 0, 0, static_cast<off_t>(bytes_.size())) == 0) return {};
  return ring_failed("fallocate");
}

Status RingMemory::close_to_others() {
  TRIBUTARY_ASSERT(role_ == Role::listener && descriptor_.is_open(),
                   "the memory is closed by the wrong side, or twice");
  const bool closed = ::fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
  if (!closed && huge_)
    return ring_failed("F_SEAL_FUTURE_WRITE");  // Linux before 5.1 lacks this
                                                // seal
  auto taken = take_pages();
  descriptor_.reset();
  return taken;
}

Status RingMemory::check_closed_to_others() {
  TRIBUTARY_ASSERT(role_ == Role::connector && descriptor_.is_open(),
                   "the memory is checked by the wrong side, or twice");
  if (huge_ && (::fcntl(descriptor_.get(), F_GET_SEALS) & F_SEAL_FUTURE_WRITE) == 0) {
    return fail(Errc::corrupt, "shared memory of a connection: its huge pages can still be taken away.");
  }
  auto taken = take_pages();
  descriptor_.reset();
  return taken;
}

Side& RingMemory::side(Role role) const noexcept {
  return *reinterpret_cast<Side*>(bytes_.data() + (role == Role::listener ? 0 : kConnectorSideAt));
}

std::byte* RingMemory::ring(Role reader) const noexcept {
  return bytes_.data() + kControlBytes + (reader == Role::connector ? 0 : ring_bytes_);
}

void copy_in(std::byte* ring, std::size_t ring_bytes, std::uint64_t at, std::span<const std::byte> from) noexcept {
  TRIBUTARY_ASSERT(from.size() <= ring_bytes, "{} bytes are put into a ring of {}", from.size(), ring_bytes);
  if (from.empty()) return;
  const std::size_t place = at & (ring_bytes - 1);
  const std::size_t straight = std::min(from.size(), ring_bytes - place);
  std::memcpy(ring + place, from.data(), straight);
  if (straight < from.size()) std::memcpy(ring, from.data() + straight, from.size() - straight);
}

void copy_out(const std::byte* ring, std::size_t ring_bytes, std::uint64_t at, std::span<std::byte> to) noexcept {
  TRIBUTARY_ASSERT(to.size() <= ring_bytes, "{} bytes are taken from a ring of {}", to.size(), ring_bytes);
  if (to.empty()) return;
  const std::size_t place = at & (ring_bytes - 1);
  const std::size_t straight = std::min(to.size(), ring_bytes - place);
  std::memcpy(to.data(), ring + place, straight);
  if (straight < to.size()) std::memcpy(to.data() + straight, ring, to.size() - straight);
}

}  // namespace tributary::transport

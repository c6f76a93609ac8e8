#include "tributary/transport/shared_memory.h"
#include "tributary/protocol/assert.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "transport/shm/memory_maps.h"
#include "transport/shm/sealed_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tributary::transport {
namespace {

std::unexpected<Error> failed(const char* call, int error = errno) {
  const bool no_room = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC;
  return fail(no_room ? Errc::exhausted : Errc::io, std::string(call) + ": " + std::strerror(error));
}

std::size_t rounded_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// One block that allocate_shared() has made.
class Allocation {
 public:
  Allocation(OwnedDescriptor file, std::span<std::byte> bytes) noexcept : file_(std::move(file)), bytes_(bytes) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { ::munmap(bytes_.data(), bytes_.size()); }

  [[nodiscard]] const OwnedDescriptor& file() const noexcept { return file_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  OwnedDescriptor file_;
  std::span<std::byte> bytes_;
};

/// All blocks of this process, by the address of their first byte. It is never destroyed, because threads may use it
/// while the process ends.
struct Allocations {
  std::mutex mutex;
  std::map<std::uintptr_t, std::shared_ptr<Allocation>> by_address;
};
Allocations& allocations() {
  static auto* const all = new Allocations;
  return *all;
}

OwnedDescriptor make_file(unsigned flags, std::size_t bytes) noexcept {
  OwnedDescriptor file(::memfd_create("tributary-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return {};
  return file;
}

/// Asks for all huge pages now: a page that is missing at the first touch would be a bus error.
OwnedDescriptor make_huge_file(std::size_t bytes) noexcept {
  OwnedDescriptor file = make_file(MFD_HUGETLB, bytes);
  if (file.is_open() && ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return file;
  return {};
}

/// This thread touches every page, so that the pages lie near it. Linux before 5.14 needs another call for this.
Status populate(const OwnedDescriptor& file, std::span<std::byte> memory) {
  if (::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) return {};
  if (errno == EINVAL && ::fallocate(file.get(), 0, 0, static_cast<off_t>(memory.size())) == 0) return {};
  return failed("there is too little memory");
}

Result<std::shared_ptr<Allocation>> make_allocation(std::size_t bytes, bool try_huge = true) {
  std::size_t whole = rounded_up(bytes, kHugePageBytes);
  OwnedDescriptor file = try_huge && bytes >= kHugePageBytes ? make_huge_file(whole) : OwnedDescriptor();
  const bool huge = file.is_open();
  if (!huge) {
    whole = rounded_up(bytes, page_bytes());
    file = make_file(0, whole);
  }
  if (!file.is_open()) return failed("memfd_create");
  if (::fcntl(file.get(), F_ADD_SEALS, kSizeSeals) != 0) return failed("F_ADD_SEALS");
  void* at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED && huge) return make_allocation(bytes, false);
  if (at == MAP_FAILED) return failed("mmap");
  const std::span memory(static_cast<std::byte*>(at), whole);
  auto allocation = std::make_shared<Allocation>(std::move(file), memory);
  if (!huge) {
    static_cast<void>(::madvise(at, whole, MADV_HUGEPAGE));  // small pages are good enough where the system refuses
    if (auto ok = populate(allocation->file(), memory); !ok) return std::unexpected(ok.error());
  }
  return allocation;
}

OwnedDescriptor duplicate(int number) noexcept {
  return OwnedDescriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
}

/// Returns the range within one allocation; nullopt: the range lies in no allocation.
std::optional<Result<SharedRange>> find_allocated(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  auto it = all.by_address.upper_bound(begin);
  if (it == all.by_address.begin()) return std::nullopt;
  --it;
  const std::shared_ptr<Allocation>& allocation = it->second;
  const std::size_t offset = begin - it->first;
  if (offset >= allocation->bytes().size()) return std::nullopt;
  if (memory.size() > allocation->bytes().size() - offset)
    return fail(Errc::unsupported, "it goes beyond the end of the allocation that it begins in");
  SharedRange range{.file = duplicate(allocation->file().get()), .offset = offset, .bytes = memory.size()};
  if (!range.file.is_open()) return failed("dup");
  range.keeps = allocation;
  return range;
}

bool is_huge(int file) noexcept {
  struct statfs system{};
  return ::fstatfs(file, &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
}

}  // namespace

void OwnedDescriptor::reset(int number) noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = number;
}

Result<std::byte*> allocate_shared(std::size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX / 2)
    return fail(Errc::bad_argument, "bytes is " + std::to_string(bytes) + ", which nobody can allocate");
  auto made = make_allocation(bytes);
  if (!made) return std::unexpected(made.error());
  std::byte* const at = (*made)->bytes().data();
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  const bool inserted = all.by_address.emplace(reinterpret_cast<std::uintptr_t>(at), std::move(*made)).second;
  TRIBUTARY_ASSERT(inserted, "memory is allocated twice at {}", at);
  return at;
}

Status free_shared(std::byte* memory) {
  Allocations& all = allocations();
  std::shared_ptr<Allocation> last;  // declared first, so that the memory is freed after the lock is released
  const std::lock_guard lock(all.mutex);
  const auto it = all.by_address.find(reinterpret_cast<std::uintptr_t>(memory));
  if (it == all.by_address.end()) return fail(Errc::bad_argument, "ptr is nothing that tributary_mem_alloc gave");
  if (it->second.use_count() > 1)
    return fail(Errc::bad_argument, "ptr is still registered: tributary_mem_deregister comes first");
  last = std::move(it->second);
  all.by_address.erase(it);
  return {};
}

Result<SharedRange> find_shared(std::span<const std::byte> memory) {
  if (auto allocated = find_allocated(memory)) return std::move(*allocated);
  auto mapped = find_mapped_file(memory);
  if (!mapped) return std::unexpected(mapped.error());
  const int seals = ::fcntl(mapped->file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(Errc::unsupported,
                "its memfd is not sealed against shrinking, so another process could get a bus error from it: make it "
                "with MFD_ALLOW_SEALING, and fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)");
  }
  if (is_huge(mapped->file.get())) {
    return fail(Errc::unsupported,
                "it is of huge pages of hugetlbfs that tributary_mem_alloc did not give: holes that are punched into "
                "them would be bus errors in other processes");
  }
  return mapped;
}

void keep_huge_pages(const SharedRange& range) noexcept {
  if (is_huge(range.file.get())) static_cast<void>(::fcntl(range.file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
}

Result<ReadableMemory> ReadableMemory::make(std::size_t bytes) {
  ReadableMemory made;
  const std::size_t whole = rounded_up(bytes, page_bytes());
  made.file_ = make_file(0, whole);
  if (!made.file_.is_open()) return failed("memfd_create");
  void* at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, made.file_.get(), 0);
  if (at == MAP_FAILED) return failed("mmap");
  made.bytes_ = {static_cast<std::byte*>(at), whole};
  static_cast<void>(::madvise(at, whole, MADV_HUGEPAGE));
  // A forked child does not get this memory: the child could write into it while this process uses it for results.
  static_cast<void>(::madvise(at, whole, MADV_DONTFORK));
  if (auto ok = populate(made.file_, made.bytes_); !ok) return std::unexpected(ok.error());
  if (::fcntl(made.file_.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
    return fail(Errc::unsupported, "this system has no F_SEAL_FUTURE_WRITE");
  return made;
}

ReadableMemory::~ReadableMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedRange> ReadableMemory::range() const {
  SharedRange range{.file = duplicate(file_.get()), .offset = 0, .bytes = bytes_.size()};
  if (!range.file.is_open()) return failed("dup");
  return range;
}

Result<ForeignMapping> ForeignMapping::map(const OwnedDescriptor& file, std::uint64_t offset, std::size_t bytes,
                                           Access access, bool huge_pages_too) {
  const auto refused = [](const char* why) {
    return fail(Errc::corrupt, std::string("shared memory of another process: ") + why);
  };
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return refused("it is not sealed against shrinking");
  // Asks for the size only now, because from here on the file cannot change its size.
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return failed("fstat");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (bytes == 0 || offset > size || bytes > size - offset) return refused("it is smaller than announced");
  const bool huge = is_huge(file.get());
  if (huge && !huge_pages_too) {
    if ((seals & F_SEAL_FUTURE_WRITE) == 0) return refused("huge pages can be taken away");
    // Allocates again all pages that were taken away before the seal, or fails: a hole would be a bus error.
    if (::fallocate(file.get(), 0, 0, status.st_size) != 0) return failed("the system has too few huge pages");
  }
  const std::size_t unit = huge ? static_cast<std::size_t>(status.st_blksize) : page_bytes();
  const std::uint64_t begin = offset / unit * unit;
  const std::size_t whole = rounded_up(offset - begin + bytes, unit);
  const int protection = access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* at = ::mmap(nullptr, whole, protection, MAP_SHARED, file.get(), static_cast<off_t>(begin));
  if (at == MAP_FAILED) return failed("mmap");
  static_cast<void>(::madvise(at, whole, MADV_HUGEPAGE));
  static_cast<void>(::madvise(at, whole, MADV_DONTDUMP));
  static_cast<void>(::madvise(at, whole, MADV_DONTFORK));
  ForeignMapping mapping;
  mapping.whole_ = {static_cast<std::byte*>(at), whole};
  mapping.bytes_ = mapping.whole_.subspan(offset - begin, bytes);
  return mapping;
}

ForeignMapping::~ForeignMapping() {
  if (is_open()) ::munmap(whole_.data(), whole_.size());
}

}  // namespace tributary::transport

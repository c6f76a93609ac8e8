#pragma once
// Memory of this process that other processes can map: an allocator, and a search for the file behind a range that
// other code has mapped. A process that maps another one's memory must not get a bus error from it, so it takes only
// files that are sealed against shrinking.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "tributary/protocol/error.h"

namespace tributary::transport {

/// A descriptor that its owner closes when it is destroyed.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int number) noexcept : number_(number) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  ~OwnedDescriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  void reset(int number = -1) noexcept;

 private:
  int number_ = -1;
};

/// Allocates memory in a file of its own, which has no name and ends with its last mapping. The memory consists of huge
/// pages where the system has set some aside, is zeroed, and is allocated as a whole, so that no access to it can fail.
/// A child after fork() shares it. Any thread may call it, and the functions below.
[[nodiscard]] Result<std::byte*> allocate_shared(std::size_t bytes);
/// Fails with Errc::bad_argument if allocate_shared() did not return `memory`, or while a SharedRange of it is alive.
[[nodiscard]] Status free_shared(std::byte* memory);

/// The file behind a range of this process's memory, and the range's part of the file.
struct SharedRange {
  OwnedDescriptor file;
  std::uint64_t offset = 0;  // offset of the range's first byte in the file
  std::size_t bytes = 0;
  std::shared_ptr<const void> keeps{};  // the allocation, if allocate_shared() made it
};
/// Finds the file of memory that allocate_shared() returned, or of any shared, writable mapping of a memfd that is
/// sealed against shrinking. The text of Errc::unsupported is the reason, a sentence without its full stop.
[[nodiscard]] Result<SharedRange> find_shared(std::span<const std::byte> memory);

/// Seals a range of huge pages: from then on no process can take its pages away or map it again for writing. So even a
/// process that does not trust this one can map it for reading.
void keep_huge_pages(const SharedRange& range) noexcept;

/// Zeroed memory that other processes may map for reading, and that can be written only through this mapping. Another
/// process can neither shorten the file nor take its pages.
class ReadableMemory {
 public:
  /// Fails with Errc::unsupported if the system cannot seal the memory in this way (Linux before 5.1).
  [[nodiscard]] static Result<ReadableMemory> make(std::size_t bytes);
  ReadableMemory() = default;
  ReadableMemory(ReadableMemory&& other) noexcept
      : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}
  ReadableMemory& operator=(ReadableMemory&&) = delete;
  ~ReadableMemory();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// The whole memory as a range that can be passed to other processes. Errc::exhausted: no descriptor is left.
  [[nodiscard]] Result<SharedRange> range() const;

 private:
  OwnedDescriptor file_;
  std::span<std::byte> bytes_;  // whole pages
};

/// A mapping of memory that another process has passed.
class ForeignMapping {
 public:
  enum class Access : std::uint8_t { read, write };
  /// Maps the memory. Errc::corrupt: the file is not sealed against shrinking, is too small, or cannot be mapped here.
  /// `huge_pages_too`: a file of huge pages is allowed, because the other process is trusted to punch no holes into it,
  /// or can no longer punch any. A hole would be a bus error here.
  [[nodiscard]] static Result<ForeignMapping> map(const OwnedDescriptor& file, std::uint64_t offset, std::size_t bytes,
                                                  Access access, bool huge_pages_too);
  ForeignMapping() = default;
  ForeignMapping(ForeignMapping&& other) noexcept
      : whole_(std::exchange(other.whole_, {})), bytes_(std::exchange(other.bytes_, {})) {}
  ForeignMapping& operator=(ForeignMapping&& other) noexcept {
    std::swap(whole_, other.whole_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ForeignMapping();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_open() const noexcept { return !whole_.empty(); }

 private:
  std::span<std::byte> whole_;  // whole pages
  std::span<std::byte> bytes_;
};

}  // namespace tributary::transport

#pragma once
// Memory that the processes of one host share. It is a memfd, which has no name and ends with its last process.
#include <cstddef>
#include <memory>
#include <span>

#include "tributary/protocol/error.h"

namespace tributary::client::local {

/// A file descriptor that closes when its owner is destroyed.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  int release() noexcept;

 private:
  int number_ = -1;
};

/// One mapping of the shared memory. Threads of one process may share it, if each thread acts as a rank.
class Arena {
 public:
  /// Makes zeroed memory of at least `bytes`: in huge pages if the administrator has reserved enough of them, else in
  /// ordinary memory, for which it asks for huge pages. Seals fix the memory's size, so no rank can cause a bus error
  /// in another rank.
  [[nodiscard]] static Result<std::shared_ptr<Arena>> create(std::size_t bytes);
  /// Maps the memory that create() made in another process.
  [[nodiscard]] static Result<std::shared_ptr<Arena>> adopt(FileDescriptor descriptor, std::size_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }

 private:
  Arena(FileDescriptor descriptor, std::span<std::byte> bytes) noexcept
      : descriptor_(std::move(descriptor)), bytes_(bytes) {}
  [[nodiscard]] static Result<std::shared_ptr<Arena>> map(FileDescriptor descriptor, std::size_t bytes);

  FileDescriptor descriptor_;
  std::span<std::byte> bytes_;
};

}  // namespace tributary::client::local

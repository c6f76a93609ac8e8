#pragma once
// A buffer of any type of MPI, as bytes that lie one after the other.
#include <cstddef>
#include <vector>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {

/// The bytes of `count` elements of `type` at `buffer`: the buffer itself if the type is predefined and has no gaps,
/// else a copy in the order of MPI_Pack. Ranks may name the same bytes by different types, so the type of one rank must
/// not decide which way a call goes.
class Contiguous {
 public:
  Contiguous(void* buffer, std::size_t count, MPI_Datatype type, std::size_t bytes_of_one);
  Contiguous(const Contiguous&) = delete;
  Contiguous& operator=(const Contiguous&) = delete;
  ~Contiguous();

  [[nodiscard]] std::byte* bytes() noexcept;
  [[nodiscard]] std::size_t bytes_of_one() const noexcept { return bytes_of_one_; }
  /// Copies `elements` elements from the buffer, `first` elements after its beginning, into bytes().
  [[nodiscard]] int load(std::size_t first, std::size_t elements);
  /// Copies bytes() to the buffer.
  [[nodiscard]] int store();

  /// Returns the size of one element of `type`; 0 if MPI refuses the type.
  [[nodiscard]] static std::size_t bytes_of(MPI_Datatype type);
  /// Returns the distance between two elements of `type` in a buffer.
  [[nodiscard]] static std::ptrdiff_t extent_of(MPI_Datatype type);
  static constexpr std::size_t kBytesMax = 1U << 30;  // MPI_Pack takes an int

 private:
  std::byte* const buffer_;
  const std::size_t count_;
  MPI_Datatype type_;      // a duplicate, if it is needed after the call's start: the program may free its type then
  bool own_type_ = false;  // it is a duplicate
  const std::size_t bytes_of_one_;
  bool copied_ = false;
  std::vector<std::byte> copy_;
};

}  // namespace tributary::mpi

#pragma once
// MPI_MINLOC and MPI_MAXLOC: the least or the greatest value, and the least index that has it.
#include <tributary/tributary.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {

/// A pair of a value and an index, of at most 32 bits each, as one whole number: the value in its upper half, so that
/// the least of these numbers is MPI_MINLOC's result. MPI_MAXLOC wants the least index of the greatest value, so there
/// the index is counted backwards.
class Pairs {
 public:
  enum class Half : unsigned char { int16, int32, float32 };

  /// Returns nullopt for other operations, and for types whose pairs have more than 64 bits.
  [[nodiscard]] static std::optional<Pairs> of(MPI_Datatype type, MPI_Op op);

  /// The reduction of the whole numbers, which are uint64.
  [[nodiscard]] tributary_op op() const noexcept { return greatest_ ? TRIBUTARY_MAX : TRIBUTARY_MIN; }
  [[nodiscard]] std::uint64_t number_of(const std::byte* pair) const noexcept;
  void put(std::uint64_t number, std::byte* pair) const noexcept;

  /// Both read or write `count` pairs at `pairs`.
  void load(const void* pairs, std::size_t count, std::vector<std::uint64_t>& numbers) const;
  void store(const std::vector<std::uint64_t>& numbers, std::size_t count, void* pairs) const noexcept;

 private:
  Pairs(Half value, Half index, bool greatest) : value_(value), index_(index), greatest_(greatest) {}

  Half value_;
  Half index_;
  bool greatest_;
};

}  // namespace tributary::mpi

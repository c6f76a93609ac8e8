#include "client/plugins/mpi/pairs.h"

#include <array>
#include <cstring>

namespace tributary::mpi {
namespace {

using Half = Pairs::Half;

constexpr std::size_t kPairBytes = 8;  // also of a short and an int, between which lies a gap
constexpr std::size_t kIndexAt = 4;
constexpr std::uint32_t kSign = 0x80000000U;

template <class T>
T read(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Returns a number whose order is that of the half's values. The two zeros are one value, so that the index decides
/// between them.
std::uint32_t ordered(Half half, const std::byte* from) noexcept {
  if (half == Half::int16) return static_cast<std::uint32_t>(std::int32_t{read<std::int16_t>(from)}) ^ kSign;
  if (half == Half::int32) return read<std::uint32_t>(from) ^ kSign;
  const auto bits = read<std::uint32_t>(from);
  if (bits == kSign) return kSign;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

void put_half(Half half, std::uint32_t order, std::byte* to) noexcept {
  if (half == Half::int16) {
    const auto value = static_cast<std::int16_t>(order ^ kSign);
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const std::uint32_t bits = half == Half::int32 || (order & kSign) != 0 ? order ^ kSign : ~order;
  std::memcpy(to, &bits, sizeof bits);
}

}  // namespace

std::optional<Pairs> Pairs::of(MPI_Datatype type, MPI_Op op) {
  if (op != MPI_MINLOC && op != MPI_MAXLOC) return std::nullopt;
  struct Row {
    MPI_Datatype type;
    Half value, index;
  };
  const auto rows = std::to_array<Row>({{MPI_2INT, Half::int32, Half::int32},
                                        {MPI_FLOAT_INT, Half::float32, Half::int32},
                                        {MPI_SHORT_INT, Half::int16, Half::int32},
                                        {MPI_2INTEGER, Half::int32, Half::int32},
                                        {MPI_2REAL, Half::float32, Half::float32}});
  for (const Row& row : rows) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    if (row.type != type || type == MPI_DATATYPE_NULL) continue;
    // A Fortran that was built with other sizes has other pairs.
    PMPI_Type_get_extent(type, &lower, &extent);
    if (extent != static_cast<MPI_Aint>(kPairBytes)) return std::nullopt;
    return Pairs(row.value, row.index, op == MPI_MAXLOC);
  }
  return std::nullopt;
}

std::uint64_t Pairs::number_of(const std::byte* pair) const noexcept {
  const std::uint32_t index = ordered(index_, pair + kIndexAt);
  return std::uint64_t{ordered(value_, pair)} << 32 | (greatest_ ? ~index : index);
}

void Pairs::put(std::uint64_t number, std::byte* pair) const noexcept {
  const auto index = static_cast<std::uint32_t>(number);
  put_half(value_, static_cast<std::uint32_t>(number >> 32), pair);
  put_half(index_, greatest_ ? ~index : index, pair + kIndexAt);
}

void Pairs::load(const void* pairs, std::size_t count, std::vector<std::uint64_t>& numbers) const {
  numbers.resize(count);
  const auto* const from = static_cast<const std::byte*>(pairs);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = number_of(from + i * kPairBytes);
}

void Pairs::store(const std::vector<std::uint64_t>& numbers, std::size_t count, void* pairs) const noexcept {
  auto* const to = static_cast<std::byte*>(pairs);
  for (std::size_t i = 0; i < count; ++i) put(numbers[i], to + i * kPairBytes);
}

}  // namespace tributary::mpi

#include "client/plugins/mpi/types.h"

#include <array>
#include <vector>

namespace tributary::mpi {
namespace {

enum class Kind : unsigned char { signed_integer, unsigned_integer, real, complex };

struct Row {
  MPI_Datatype type;
  Kind kind;
};

std::optional<tributary_dtype> dtype_of(Kind kind, int bytes) {
  switch (bytes) {
    case 1:
      if (kind == Kind::signed_integer) return TRIBUTARY_INT8;
      if (kind == Kind::unsigned_integer) return TRIBUTARY_UINT8;
      return std::nullopt;
    case 4:
      if (kind == Kind::signed_integer) return TRIBUTARY_INT32;
      if (kind == Kind::unsigned_integer) return TRIBUTARY_UINT32;
      if (kind == Kind::real) return TRIBUTARY_FLOAT32;
      return std::nullopt;
    case 8:
      if (kind == Kind::signed_integer) return TRIBUTARY_INT64;
      if (kind == Kind::unsigned_integer) return TRIBUTARY_UINT64;
      if (kind == Kind::real) return TRIBUTARY_FLOAT64;
      return TRIBUTARY_FLOAT32;
    case 16:
      return kind == Kind::complex ? std::optional(TRIBUTARY_FLOAT64) : std::nullopt;
    default:
      return std::nullopt;
  }
}

struct Known {
  MPI_Datatype type;
  Element element;
};

/// Makes the table after MPI_Init: the sizes of Fortran's types depend on MPI's build. Long double has 16 bytes, like a
/// double complex number, and is not in the table.
std::vector<Known> known_types() {
  using enum Kind;
  const auto rows = std::to_array<Row>({
      {MPI_DOUBLE, real},
      {MPI_FLOAT, real},
      {MPI_INT, signed_integer},
      {MPI_LONG, signed_integer},
      {MPI_UNSIGNED, unsigned_integer},
      {MPI_UNSIGNED_LONG, unsigned_integer},
      {MPI_LONG_LONG_INT, signed_integer},
      {MPI_UNSIGNED_LONG_LONG, unsigned_integer},
      {MPI_SIGNED_CHAR, signed_integer},
      {MPI_UNSIGNED_CHAR, unsigned_integer},
      {MPI_INT8_T, signed_integer},
      {MPI_INT32_T, signed_integer},
      {MPI_INT64_T, signed_integer},
      {MPI_UINT8_T, unsigned_integer},
      {MPI_UINT32_T, unsigned_integer},
      {MPI_UINT64_T, unsigned_integer},
      {MPI_AINT, signed_integer},
      {MPI_OFFSET, signed_integer},
      {MPI_COUNT, signed_integer},
      {MPI_C_FLOAT_COMPLEX, complex},
      {MPI_C_DOUBLE_COMPLEX, complex},
      {MPI_INTEGER, signed_integer},
      {MPI_REAL, real},
      {MPI_DOUBLE_PRECISION, real},
      {MPI_COMPLEX, complex},
      {MPI_DOUBLE_COMPLEX, complex},
      {MPI_INTEGER1, signed_integer},
      {MPI_INTEGER4, signed_integer},
      {MPI_INTEGER8, signed_integer},
      {MPI_REAL4, real},
      {MPI_REAL8, real},
      {MPI_COMPLEX8, complex},
      {MPI_COMPLEX16, complex},
  });
  std::vector<Known> known;
  for (const Row& row : rows) {
    int bytes = 0;
    if (row.type == MPI_DATATYPE_NULL || PMPI_Type_size(row.type, &bytes) != MPI_SUCCESS) continue;
    const bool complex_number = row.kind == complex;
    if (const auto dtype = dtype_of(row.kind, bytes)) {
      known.push_back({row.type, {*dtype, complex_number ? 2U : 1U, static_cast<std::size_t>(bytes), complex_number}});
    }
  }
  return known;
}

}  // namespace

std::optional<Element> element_of(MPI_Datatype type) {
  static const std::vector<Known> known = known_types();
  for (const Known& one : known) {
    if (one.type == type) return one.element;
  }
  return std::nullopt;
}

std::optional<tributary_op> op_of(MPI_Op op, const Element& element) {
  if (op == MPI_SUM) return TRIBUTARY_SUM;
  if (element.complex) return std::nullopt;
  if (op == MPI_PROD) return TRIBUTARY_PROD;
  if (op == MPI_MIN) return TRIBUTARY_MIN;
  if (op == MPI_MAX) return TRIBUTARY_MAX;
  return std::nullopt;
}

}  // namespace tributary::mpi

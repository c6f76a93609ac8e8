#include "client/plugins/mpi/types.h"

#include <array>
#include <span>
#include <vector>

namespace tributary::mpi {
namespace {

/// The kinds of predefined types by MPI's rules, which say what operations each kind has.
enum class Kind : unsigned char {
  c_signed,
  c_unsigned,
  other_integer,  // of Fortran, or of several languages: MPI has no logical operations for them
  logical,
  byte,
  real,
  complex,
};

struct Row {
  MPI_Datatype type;
  Kind kind;
};

bool is_signed(Kind kind) {
  return kind == Kind::c_signed || kind == Kind::other_integer;
}

std::optional<tributary_dtype> dtype_of(Kind kind, int bytes) {
  if (kind == Kind::complex) {
    if (bytes == 8) return TRIBUTARY_FLOAT32;
    return bytes == 16 ? std::optional(TRIBUTARY_FLOAT64) : std::nullopt;
  }
  if (kind == Kind::real) {
    if (bytes == 4) return TRIBUTARY_FLOAT32;
    return bytes == 8 ? std::optional(TRIBUTARY_FLOAT64) : std::nullopt;
  }
  switch (bytes) {
    case 1:
      return is_signed(kind) ? TRIBUTARY_INT8 : TRIBUTARY_UINT8;
    case 2:
      return is_signed(kind) ? TRIBUTARY_INT16 : TRIBUTARY_UINT16;
    case 4:
      return is_signed(kind) ? TRIBUTARY_INT32 : TRIBUTARY_UINT32;
    case 8:
      return is_signed(kind) ? TRIBUTARY_INT64 : TRIBUTARY_UINT64;
    default:
      return std::nullopt;
  }
}

Operations operations_of(Kind kind) {
  switch (kind) {
    case Kind::c_signed:
    case Kind::c_unsigned:
      return {.sum = true, .arithmetic = true, .bitwise = true, .logical = true};
    case Kind::other_integer:
      return {.sum = true, .arithmetic = true, .bitwise = true};
    case Kind::logical:
      return {.logical = true};
    case Kind::byte:
      return {.bitwise = true};
    case Kind::real:
      return {.sum = true, .arithmetic = true};
    case Kind::complex:
      return {.sum = true};
  }
  return {};
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
      {MPI_INT, c_signed},
      {MPI_LONG, c_signed},
      {MPI_UNSIGNED, c_unsigned},
      {MPI_UNSIGNED_LONG, c_unsigned},
      {MPI_LONG_LONG_INT, c_signed},
      {MPI_UNSIGNED_LONG_LONG, c_unsigned},
      {MPI_SHORT, c_signed},
      {MPI_UNSIGNED_SHORT, c_unsigned},
      {MPI_SIGNED_CHAR, c_signed},
      {MPI_UNSIGNED_CHAR, c_unsigned},
      {MPI_INT8_T, c_signed},
      {MPI_INT16_T, c_signed},
      {MPI_INT32_T, c_signed},
      {MPI_INT64_T, c_signed},
      {MPI_UINT8_T, c_unsigned},
      {MPI_UINT16_T, c_unsigned},
      {MPI_UINT32_T, c_unsigned},
      {MPI_UINT64_T, c_unsigned},
      {MPI_C_BOOL, logical},
      {MPI_BYTE, byte},
      {MPI_AINT, other_integer},
      {MPI_OFFSET, other_integer},
      {MPI_COUNT, other_integer},
      {MPI_C_FLOAT_COMPLEX, complex},
      {MPI_C_DOUBLE_COMPLEX, complex},
      {MPI_INTEGER, other_integer},
      {MPI_REAL, real},
      {MPI_DOUBLE_PRECISION, real},
      {MPI_COMPLEX, complex},
      {MPI_DOUBLE_COMPLEX, complex},
      {MPI_LOGICAL, logical},
      {MPI_INTEGER1, other_integer},
      {MPI_INTEGER2, other_integer},
      {MPI_INTEGER4, other_integer},
      {MPI_INTEGER8, other_integer},
      {MPI_REAL4, real},
      {MPI_REAL8, real},
      {MPI_COMPLEX8, complex},
      {MPI_COMPLEX16, complex},
  });
  std::vector<Known> known;
  for (const Row& row : rows) {
    int bytes = 0;
    if (row.type == MPI_DATATYPE_NULL || PMPI_Type_size(row.type, &bytes) != MPI_SUCCESS) continue;
    if (const auto dtype = dtype_of(row.kind, bytes)) {
      known.push_back({row.type,
                       {.dtype = *dtype,
                        .per_element = row.kind == complex ? 2U : 1U,
                        .bytes = static_cast<std::size_t>(bytes),
                        .operations = operations_of(row.kind)}});
    }
  }
  return known;
}

struct KnownOperation {
  MPI_Op op;
  tributary_op own;
};

std::optional<tributary_op> find(std::span<const KnownOperation> operations, MPI_Op op) {
  for (const KnownOperation& one : operations) {
    if (one.op == op) return one.own;
  }
  return std::nullopt;
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
  if (op == MPI_SUM) return element.operations.sum ? std::optional(TRIBUTARY_SUM) : std::nullopt;
  const auto arithmetic =
      std::to_array<KnownOperation>({{MPI_MAX, TRIBUTARY_MAX}, {MPI_MIN, TRIBUTARY_MIN}, {MPI_PROD, TRIBUTARY_PROD}});
  const auto bitwise =
      std::to_array<KnownOperation>({{MPI_BOR, TRIBUTARY_BOR}, {MPI_BAND, TRIBUTARY_BAND}, {MPI_BXOR, TRIBUTARY_BXOR}});
  const auto logical =
      std::to_array<KnownOperation>({{MPI_LAND, TRIBUTARY_LAND}, {MPI_LOR, TRIBUTARY_LOR}, {MPI_LXOR, TRIBUTARY_LXOR}});
  if (const auto own = find(arithmetic, op)) return element.operations.arithmetic ? own : std::nullopt;
  if (const auto own = find(bitwise, op)) return element.operations.bitwise ? own : std::nullopt;
  if (const auto own = find(logical, op)) return element.operations.logical ? own : std::nullopt;
  return std::nullopt;
}

}  // namespace tributary::mpi

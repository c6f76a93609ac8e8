#pragma once
// MPI's types and operations, as libtributary has them.
#include <tributary/tributary.h>

#include <cstddef>
#include <optional>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {

/// The operations that MPI has for a type, and that libtributary has, too. An operation that MPI lacks is the program's
/// error, so MPI gets the call and reports it.
struct Operations {
  bool sum = false;
  bool arithmetic = false;  // product, minimum and maximum
  bool bitwise = false;
  bool logical = false;
};

struct Element {
  tributary_dtype dtype;
  std::size_t per_element;  // two for a complex number
  std::size_t bytes;        // bytes of one element of MPI's type
  Operations operations;
};

/// Returns the element of a predefined type that libtributary reduces; nullopt for all other types.
[[nodiscard]] std::optional<Element> element_of(MPI_Datatype type);

/// Returns the predefined operation, if libtributary reduces these elements by it.
[[nodiscard]] std::optional<tributary_op> op_of(MPI_Op op, const Element& element);

}  // namespace tributary::mpi

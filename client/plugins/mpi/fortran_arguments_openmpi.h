#pragma once
// The arguments of MPI's collectives in Fortran, for Open MPI.
#include "client/plugins/mpi/form.h"
#include "client/plugins/mpi/fortran.h"

// Open MPI compares addresses of arguments with the addresses of these variables.
extern "C" {
extern int mpi_fortran_in_place_;
extern int mpi_fortran_bottom_;
}

namespace tributary::mpi::fortran {

inline void* buffer_of(void* argument) {
  if (argument == &mpi_fortran_in_place_) return MPI_IN_PLACE;
  return argument == &mpi_fortran_bottom_ ? MPI_BOTTOM : argument;
}

inline MPI_Comm comm_of(const MPI_Fint* comm) {
  return PMPI_Comm_f2c(*comm);
}

inline MPI_Datatype type_of(const MPI_Fint* type) {
  return PMPI_Type_f2c(*type);
}

inline MPI_Op op_of(const MPI_Fint* op) {
  return PMPI_Op_f2c(*op);
}

/// Returns what a rank gives. In place MPI does not read the other arguments.
inline Sent sent_of(void* buffer, const MPI_Fint* count, const MPI_Fint* type) {
  if (buffer_of(buffer) == MPI_IN_PLACE) return {MPI_IN_PLACE, 0, MPI_DATATYPE_NULL};
  return {buffer_of(buffer), *count, type_of(type)};
}

}  // namespace tributary::mpi::fortran

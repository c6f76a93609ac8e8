#pragma once
// Tools for the calls that programs in Fortran make. All arguments are addresses.
//
// Open MPI's Fortran library calls PMPI directly, so that a program in Fortran never reaches the calls for C. Programs
// with mpif.h or `use mpi` call mpi_NAME_; the library behind `use mpi_f08` calls ompi_NAME_f. This library takes both
// names, and passes on to pmpi_NAME_.
//
// MPICH's Fortran library calls this library's functions for C, except for `use mpi_f08` where a call has no buffer:
// this library takes mpi_NAME_f08_, and passes on to pmpir_NAME_f08_.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi::fortran {

using Integer = MPI_Fint*;

/// Finds the function that does the work of MPI's Fortran call. Every program in Fortran contains this function.
inline void* find(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "tributary-mpi: this program calls MPI from Fortran, but has no %s: link it with mpif90\n",
               name);
  std::abort();
}

/// Makes the same call by MPI, with the program's own arguments.
template <class... Arguments>
int pass(void* function, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(function)(arguments...);
  return MPI_SUCCESS;
}

inline void clear(Integer error) {
  if (error != nullptr) *error = MPI_SUCCESS;
}

/// Stores the code of a call that libtributary carried out. A call that was passed on has stored its own code.
inline void store(Integer error, int code) {
  if (error != nullptr && code != MPI_SUCCESS) *error = code;
}

/// Returns true if MPI has stored an error: the call ends with it.
inline bool failed(const MPI_Fint* error) {
  return error != nullptr && *error != MPI_SUCCESS;
}

}  // namespace tributary::mpi::fortran

// FORTRAN_CALL(name, (parameters), (arguments)) { ... } defines all names of a call. FORTRAN_PASS(name, arguments...)
// is a function that passes it on.
#ifdef OPEN_MPI
#define FORTRAN_CALL(name, parameters, arguments)       \
  static void name##_from_fortran parameters;           \
  TRIBUTARY_MPI_ENTRY void mpi_##name##_ parameters {   \
    name##_from_fortran arguments;                      \
  }                                                     \
  TRIBUTARY_MPI_ENTRY void ompi_##name##_f parameters { \
    name##_from_fortran arguments;                      \
  }                                                     \
  static void name##_from_fortran parameters
#define FORTRAN_WORK(name) "pmpi_" #name "_"
#else
#define FORTRAN_CALL(name, parameters, arguments) TRIBUTARY_MPI_ENTRY void mpi_##name##_f08_ parameters
#define FORTRAN_WORK(name) "pmpir_" #name "_f08_"
#endif
#define FORTRAN_PASS(name, ...)                                                      \
  [&] {                                                                              \
    static void* const function = tributary::mpi::fortran::find(FORTRAN_WORK(name)); \
    return tributary::mpi::fortran::pass(function, __VA_ARGS__);                     \
  }

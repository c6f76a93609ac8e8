#pragma once
// The info key tributary_numerics, with which a program chooses how the sums of one communicator are rounded: `fast` or
// `exact` (docs/numerics.md). The value is an attribute of the communicator, and its duplicates inherit it.
#include <tributary/tributary.h>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {

inline constexpr const char* kNumericsKey = "tributary_numerics";

/// Makes the key of the attribute. Returns false if MPI refuses.
[[nodiscard]] bool prepare_numerics();
/// Returns the value that the program has set; nullptr: the settings decide.
[[nodiscard]] const char* numerics_of(MPI_Comm comm);
/// Takes the value of the info key, if all ranks give the same value. Collective.
void take_numerics(MPI_Comm comm, MPI_Info info);
/// Adds the value to an info object that MPI has made for this communicator.
void show_numerics(MPI_Comm comm, MPI_Info info);

}  // namespace tributary::mpi

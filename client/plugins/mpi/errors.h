#pragma once
// Errors of libtributary, as errors of MPI.
#include <tributary/tributary.h>

#include <string>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {

/// Returns MPI's code for an error of libtributary; MPI_Error_string of the code gives the sentence.
[[nodiscard]] int code_of(tributary_status status, const std::string& sentence);
/// Passes the code to the communicator's error handler, and returns it. MPI_SUCCESS is returned at once.
[[nodiscard]] int told(int code, MPI_Comm comm);

}  // namespace tributary::mpi

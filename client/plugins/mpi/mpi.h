#pragma once
// The header of the MPI that this library is built for, in C alone.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

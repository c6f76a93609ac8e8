// MPI-4's collectives for C with large counts.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/exchange.h"
#include "client/plugins/mpi/nonblocking.h"
#include "client/plugins/mpi/persistent.h"

namespace mpi = tributary::mpi;

#define CALL(name) MPI_##name##_c
#define PASS(name) PMPI_##name##_c
#define COUNT MPI_Count
#define DISTANCE MPI_Aint
#include "client/plugins/mpi/entries.h"

#define INIT(name) MPI_##name##_init_c
#define PASS_INIT(name) PMPI_##name##_init_c
#include "client/plugins/mpi/entries_persistent.h"

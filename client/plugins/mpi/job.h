#pragma once
// The job's part between MPI_Init and MPI_Finalize.
#include "client/plugins/mpi/mpi.h"
#include "client/plugins/mpi/settings.h"

namespace tributary::mpi {

/// Call it after PMPI_Init: reads rank 0's settings, which hold for all ranks of MPI_COMM_WORLD. Collective.
void begin_job();
/// Call it before PMPI_Finalize: ends all communicators of libtributary, and writes the report. Collective.
void end_job();

/// Returns the settings; null outside of begin_job() and end_job(), and where every call goes by MPI. Any thread may
/// call it.
[[nodiscard]] const Settings* job_settings() noexcept;

}  // namespace tributary::mpi

// MPI's waits and tests for C: they end the requests of libtributary's operations that have ended.
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/nonblocking.h"
#include "client/plugins/mpi/persistent.h"

namespace mpi = tributary::mpi;

namespace {

void finish_some() {
  if (mpi::any_under_way()) mpi::finish_ended();
}

}  // namespace

TRIBUTARY_MPI_ENTRY int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const mpi::InPlaceOfPersistent replaced(1, request);
  return mpi::wait_by_tests(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Test(request, &flag, status);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Wait(request, status); });
}

TRIBUTARY_MPI_ENTRY int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  return mpi::wait_by_tests(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Testall(count, requests, &flag, statuses);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Waitall(count, requests, statuses); });
}

TRIBUTARY_MPI_ENTRY int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  return mpi::wait_by_tests(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Testany(count, requests, index, &flag, status);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Waitany(count, requests, index, status); });
}

TRIBUTARY_MPI_ENTRY int MPI_Waitsome(int count, MPI_Request requests[], int* ended, int indices[],
                                     MPI_Status statuses[]) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  return mpi::wait_by_tests(
      [&](bool& done) {
        const int code = PMPI_Testsome(count, requests, ended, indices, statuses);
        done = *ended != 0;  // a number, or MPI_UNDEFINED: no request is active
        return code;
      },
      [&] { return PMPI_Waitsome(count, requests, ended, indices, statuses); });
}

TRIBUTARY_MPI_ENTRY int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const mpi::InPlaceOfPersistent replaced(1, request);
  finish_some();
  return PMPI_Test(request, flag, status);
}

TRIBUTARY_MPI_ENTRY int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  finish_some();
  return PMPI_Testall(count, requests, flag, statuses);
}

TRIBUTARY_MPI_ENTRY int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  finish_some();
  return PMPI_Testany(count, requests, index, flag, status);
}

TRIBUTARY_MPI_ENTRY int MPI_Testsome(int count, MPI_Request requests[], int* ended, int indices[],
                                     MPI_Status statuses[]) {
  const mpi::InPlaceOfPersistent replaced(count, requests);
  finish_some();
  return PMPI_Testsome(count, requests, ended, indices, statuses);
}

TRIBUTARY_MPI_ENTRY int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const mpi::InPlaceOfPersistent replaced(1, &request);
  finish_some();
  return PMPI_Request_get_status(request, flag, status);
}

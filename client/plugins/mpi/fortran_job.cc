// MPI's begin, end, waits and tests for Fortran, and the collective that has no buffer.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/fortran.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/nonblocking.h"

namespace mpi = tributary::mpi;
using mpi::fortran::clear;
using mpi::fortran::failed;
using mpi::fortran::Integer;
using mpi::fortran::store;

FORTRAN_CALL(init, (Integer error), (error)) {
  FORTRAN_PASS(init, error)();
  mpi::begin_job();
}

FORTRAN_CALL(init_thread, (Integer required, Integer provided, Integer error), (required, provided, error)) {
  FORTRAN_PASS(init_thread, required, provided, error)();
  mpi::begin_job();
}

FORTRAN_CALL(finalize, (Integer error), (error)) {
  mpi::end_job();
  FORTRAN_PASS(finalize, error)();
}

FORTRAN_CALL(barrier, (Integer comm, Integer error), (comm, error)) {
  clear(error);
  store(error, mpi::blocking(mpi::barrier(PMPI_Comm_f2c(*comm)), FORTRAN_PASS(barrier, comm, error)));
}

// A program may start an operation in C, and wait for its request in Fortran.
FORTRAN_CALL(wait, (Integer request, Integer status, Integer error), (request, status, error)) {
  clear(error);
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        FORTRAN_PASS(test, request, &flag, status, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      FORTRAN_PASS(wait, request, status, error));
}

FORTRAN_CALL(waitall, (Integer count, Integer requests, Integer statuses, Integer error),
             (count, requests, statuses, error)) {
  clear(error);
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        FORTRAN_PASS(testall, count, requests, &flag, statuses, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      FORTRAN_PASS(waitall, count, requests, statuses, error));
}

FORTRAN_CALL(waitany, (Integer count, Integer requests, Integer index, Integer status, Integer error),
             (count, requests, index, status, error)) {
  clear(error);
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        FORTRAN_PASS(testany, count, requests, index, &flag, status, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      FORTRAN_PASS(waitany, count, requests, index, status, error));
}

FORTRAN_CALL(waitsome,
             (Integer count, Integer requests, Integer ended, Integer indices, Integer statuses, Integer error),
             (count, requests, ended, indices, statuses, error)) {
  clear(error);
  mpi::wait_by_tests(
      [&](bool& done) {
        FORTRAN_PASS(testsome, count, requests, ended, indices, statuses, error)();
        done = *ended != 0 || failed(error);
        return MPI_SUCCESS;
      },
      FORTRAN_PASS(waitsome, count, requests, ended, indices, statuses, error));
}

FORTRAN_CALL(test, (Integer request, Integer flag, Integer status, Integer error), (request, flag, status, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(test, request, flag, status, error)();
}

FORTRAN_CALL(testall, (Integer count, Integer requests, Integer flag, Integer statuses, Integer error),
             (count, requests, flag, statuses, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testall, count, requests, flag, statuses, error)();
}

FORTRAN_CALL(testany, (Integer count, Integer requests, Integer index, Integer flag, Integer status, Integer error),
             (count, requests, index, flag, status, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testany, count, requests, index, flag, status, error)();
}

FORTRAN_CALL(testsome,
             (Integer count, Integer requests, Integer ended, Integer indices, Integer statuses, Integer error),
             (count, requests, ended, indices, statuses, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testsome, count, requests, ended, indices, statuses, error)();
}

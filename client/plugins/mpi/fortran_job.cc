// MPI's calls for Fortran that have no buffer: begin, end, barrier, and those that take requests or info keys.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/fortran.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/nonblocking.h"
#include "client/plugins/mpi/numerics.h"
#include "client/plugins/mpi/persistent.h"

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
  const mpi::InPlaceOfPersistent replaced(1, request);
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
  const mpi::InPlaceOfPersistent replaced(*count, requests);
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
  const mpi::InPlaceOfPersistent replaced(*count, requests);
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
  const mpi::InPlaceOfPersistent replaced(*count, requests);
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
  const mpi::InPlaceOfPersistent replaced(1, request);
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(test, request, flag, status, error)();
}

FORTRAN_CALL(testall, (Integer count, Integer requests, Integer flag, Integer statuses, Integer error),
             (count, requests, flag, statuses, error)) {
  const mpi::InPlaceOfPersistent replaced(*count, requests);
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testall, count, requests, flag, statuses, error)();
}

FORTRAN_CALL(testany, (Integer count, Integer requests, Integer index, Integer flag, Integer status, Integer error),
             (count, requests, index, flag, status, error)) {
  const mpi::InPlaceOfPersistent replaced(*count, requests);
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testany, count, requests, index, flag, status, error)();
}

FORTRAN_CALL(testsome,
             (Integer count, Integer requests, Integer ended, Integer indices, Integer statuses, Integer error),
             (count, requests, ended, indices, statuses, error)) {
  const mpi::InPlaceOfPersistent replaced(*count, requests);
  if (mpi::any_under_way()) mpi::finish_ended();
  FORTRAN_PASS(testsome, count, requests, ended, indices, statuses, error)();
}

// Start a request that another part of the program has made in C, too.
FORTRAN_CALL(start, (Integer request, Integer error), (request, error)) {
  clear(error);
  if (const auto code = mpi::start_persistent(PMPI_Request_f2c(*request))) return store(error, *code);
  FORTRAN_PASS(start, request, error)();
}

FORTRAN_CALL(startall, (Integer count, Integer requests, Integer error), (count, requests, error)) {
  clear(error);
  if (!mpi::any_persistent()) {
    FORTRAN_PASS(startall, count, requests, error)();
    return;
  }
  store(error, mpi::start_each(*count, requests, [&](Integer request) {
          if (const auto code = mpi::start_persistent(PMPI_Request_f2c(*request))) return *code;
          FORTRAN_PASS(start, request, error)();
          return failed(error) ? *error : MPI_SUCCESS;
        }));
}

FORTRAN_CALL(request_free, (Integer request, Integer error), (request, error)) {
  mpi::forget_persistent(PMPI_Request_f2c(*request));
  FORTRAN_PASS(request_free, request, error)();
}

FORTRAN_CALL(comm_set_info, (Integer comm, Integer info, Integer error), (comm, info, error)) {
  clear(error);
  FORTRAN_PASS(comm_set_info, comm, info, error)();
  if (!failed(error)) mpi::take_numerics(PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info));
}

FORTRAN_CALL(comm_get_info, (Integer comm, Integer info, Integer error), (comm, info, error)) {
  clear(error);
  FORTRAN_PASS(comm_get_info, comm, info, error)();
  if (!failed(error)) mpi::show_numerics(PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info));
}

FORTRAN_CALL(comm_dup_with_info, (Integer comm, Integer info, Integer made, Integer error), (comm, info, made, error)) {
  clear(error);
  FORTRAN_PASS(comm_dup_with_info, comm, info, made, error)();
  if (!failed(error)) mpi::take_numerics(PMPI_Comm_f2c(*made), PMPI_Info_f2c(*info));
}

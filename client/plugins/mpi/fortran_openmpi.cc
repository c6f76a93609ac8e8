// MPI's calls for Fortran, for Open MPI: its Fortran library calls PMPI directly, so that a program in Fortran never
// reaches the calls for C. Programs with mpif.h or `use mpi` call mpi_NAME_; the library behind `use mpi_f08` calls
// ompi_NAME_f. Both pass on to pmpi_NAME_ with the program's own arguments. All arguments are addresses.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/nonblocking.h"

namespace mpi = tributary::mpi;

// Open MPI compares addresses of arguments with the addresses of these variables.
extern "C" {
extern int mpi_fortran_in_place_;
extern int mpi_fortran_bottom_;
}

namespace {

using Integer = MPI_Fint*;

void* buffer_of(void* argument) {
  if (argument == &mpi_fortran_in_place_) return MPI_IN_PLACE;
  return argument == &mpi_fortran_bottom_ ? MPI_BOTTOM : argument;
}

/// Finds the function that has the work of MPI's Fortran call. The library of Open MPI that has it is a part of every
/// program in Fortran.
void* find(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "tributary-mpi: this program calls MPI from Fortran, but has no %s: link it with mpif90\n",
               name);
  std::abort();
}

template <class... Arguments>
int pass(void* function, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(function)(arguments...);
  return MPI_SUCCESS;
}

/// Stores the code of a call that libtributary carried out. A call that was passed on has stored its own code.
void store(Integer error, int code) {
  if (error != nullptr && code != MPI_SUCCESS) *error = code;
}

/// Returns true if Open MPI has stored an error: the call ends with it.
bool failed(const MPI_Fint* error) {
  return error != nullptr && *error != MPI_SUCCESS;
}

MPI_Comm comm_of(const MPI_Fint* comm) {
  return PMPI_Comm_f2c(*comm);
}

MPI_Datatype type_of(const MPI_Fint* type) {
  return PMPI_Type_f2c(*type);
}

MPI_Op op_of(const MPI_Fint* op) {
  return PMPI_Op_f2c(*op);
}

}  // namespace

// Defines both names of a call.
#define FORTRAN_CALL(name, parameters, arguments)       \
  static void name##_from_fortran parameters;           \
  TRIBUTARY_MPI_ENTRY void mpi_##name##_ parameters {   \
    name##_from_fortran arguments;                      \
  }                                                     \
  TRIBUTARY_MPI_ENTRY void ompi_##name##_f parameters { \
    name##_from_fortran arguments;                      \
  }                                                     \
  static void name##_from_fortran parameters

// Passes a call on.
#define PASS_ON(name, ...)                                 \
  [&] {                                                    \
    static void* const function = find("pmpi_" #name "_"); \
    return pass(function, __VA_ARGS__);                    \
  }

FORTRAN_CALL(init, (Integer error), (error)) {
  PASS_ON(init, error)();
  mpi::begin_job();
}

FORTRAN_CALL(init_thread, (Integer required, Integer provided, Integer error), (required, provided, error)) {
  PASS_ON(init_thread, required, provided, error)();
  mpi::begin_job();
}

FORTRAN_CALL(finalize, (Integer error), (error)) {
  mpi::end_job();
  PASS_ON(finalize, error)();
}

FORTRAN_CALL(allreduce, (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error, mpi::all_reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm),
                               PASS_ON(allreduce, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(reduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer root, Integer comm,
              Integer error),
             (send, recv, count, type, op, root, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error, mpi::reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), *root, comm_of(comm),
                           PASS_ON(reduce, send, recv, count, type, op, root, comm, error)));
}

FORTRAN_CALL(bcast, (void* buffer, Integer count, Integer type, Integer root, Integer comm, Integer error),
             (buffer, count, type, root, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error, mpi::broadcast(buffer_of(buffer), *count, type_of(type), *root, comm_of(comm),
                              PASS_ON(bcast, buffer, count, type, root, comm, error)));
}

FORTRAN_CALL(barrier, (Integer comm, Integer error), (comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error, mpi::barrier(comm_of(comm), PASS_ON(barrier, comm, error)));
}

FORTRAN_CALL(reduce_scatter,
             (void* send, void* recv, Integer counts, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, counts, type, op, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error, mpi::reduce_scatter(buffer_of(send), buffer_of(recv), counts, type_of(type), op_of(op), comm_of(comm),
                                   PASS_ON(reduce_scatter, send, recv, counts, type, op, comm, error)));
}

FORTRAN_CALL(reduce_scatter_block,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  store(error,
        mpi::reduce_scatter_block(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm),
                                  PASS_ON(reduce_scatter_block, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(allgather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)) {
  if (error != nullptr) *error = MPI_SUCCESS;
  const bool in_place = buffer_of(send) == MPI_IN_PLACE;  // MPI does not read the other arguments of `send` then
  const mpi::GatherArguments arguments{
      buffer_of(send), in_place ? 0 : *sendcount, in_place ? MPI_DATATYPE_NULL : type_of(sendtype), buffer_of(recv),
      *recvcount,      type_of(recvtype)};
  store(error, mpi::all_gather(arguments, comm_of(comm),
                               PASS_ON(allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)));
}

// A program may start an operation in C, and wait for its request in Fortran. Nonblocking calls in Fortran go by MPI.
FORTRAN_CALL(wait, (Integer request, Integer status, Integer error), (request, status, error)) {
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        PASS_ON(test, request, &flag, status, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      PASS_ON(wait, request, status, error));
}

FORTRAN_CALL(waitall, (Integer count, Integer requests, Integer statuses, Integer error),
             (count, requests, statuses, error)) {
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        PASS_ON(testall, count, requests, &flag, statuses, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      PASS_ON(waitall, count, requests, statuses, error));
}

FORTRAN_CALL(waitany, (Integer count, Integer requests, Integer index, Integer status, Integer error),
             (count, requests, index, status, error)) {
  mpi::wait_by_tests(
      [&](bool& done) {
        MPI_Fint flag = 0;
        PASS_ON(testany, count, requests, index, &flag, status, error)();
        done = flag != 0 || failed(error);
        return MPI_SUCCESS;
      },
      PASS_ON(waitany, count, requests, index, status, error));
}

FORTRAN_CALL(waitsome,
             (Integer count, Integer requests, Integer ended, Integer indices, Integer statuses, Integer error),
             (count, requests, ended, indices, statuses, error)) {
  mpi::wait_by_tests(
      [&](bool& done) {
        PASS_ON(testsome, count, requests, ended, indices, statuses, error)();
        done = *ended != 0 || failed(error);
        return MPI_SUCCESS;
      },
      PASS_ON(waitsome, count, requests, ended, indices, statuses, error));
}

FORTRAN_CALL(test, (Integer request, Integer flag, Integer status, Integer error), (request, flag, status, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  PASS_ON(test, request, flag, status, error)();
}

FORTRAN_CALL(testall, (Integer count, Integer requests, Integer flag, Integer statuses, Integer error),
             (count, requests, flag, statuses, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  PASS_ON(testall, count, requests, flag, statuses, error)();
}

FORTRAN_CALL(testany, (Integer count, Integer requests, Integer index, Integer flag, Integer status, Integer error),
             (count, requests, index, flag, status, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  PASS_ON(testany, count, requests, index, flag, status, error)();
}

FORTRAN_CALL(testsome,
             (Integer count, Integer requests, Integer ended, Integer indices, Integer statuses, Integer error),
             (count, requests, ended, indices, statuses, error)) {
  if (mpi::any_under_way()) mpi::finish_ended();
  PASS_ON(testsome, count, requests, ended, indices, statuses, error)();
}

! Persistent collectives of Open MPI 4 in Fortran, with the old interface.
program mpi_check_persistent_mpifh
  implicit none
  include 'mpif.h'
  include 'mpif-ext.h'
  integer, parameter :: n = 30001, rounds = 5
  integer :: rank, ranks, error, i, round, requests(2)
  double precision :: values(n), sums(n)
  integer :: numbers(n)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPIX_Allreduce_init(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                           requests(1), error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPIX_Bcast_init(numbers, n, MPI_INTEGER, 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
  do round = 1, rounds
    values = [(dble(rank + round + mod(i, 100)), i = 1, n)]
    numbers = merge(round, 0, rank == 1)
    call MPI_Startall(2, requests, error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    do i = 1, n
      if (sums(i) /= ranks * (ranks - 1) / 2 + ranks * (round + mod(i, 100))) call MPI_Abort(MPI_COMM_WORLD, 2, error)
    end do
    if (any(numbers /= round)) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  end do
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize(error)
end program

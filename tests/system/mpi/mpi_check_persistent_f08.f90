! Persistent collectives of Open MPI 4 in Fortran, with the interface of Fortran 2008.
program mpi_check_persistent_f08
  use mpi_f08
  use mpi_f08_ext
  implicit none
  integer, parameter :: n = 30001, rounds = 5
  integer :: rank, ranks, i, round
  real :: values(n), sums(n)
  integer :: numbers(n)
  type(MPI_Request) :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPIX_Allreduce_init(values, sums, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
  call MPIX_Bcast_init(numbers, n, MPI_INTEGER, 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
  do round = 1, rounds
    values = [(real(rank + round + mod(i, 100)), i = 1, n)]
    numbers = merge(round, 0, rank == 1)
    call MPI_Start(requests(2))
    call MPI_Start(requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
    do i = 1, n
      if (sums(i) /= ranks * (ranks - 1) / 2 + ranks * (round + mod(i, 100))) call MPI_Abort(MPI_COMM_WORLD, 2)
    end do
    if (any(numbers /= round)) call MPI_Abort(MPI_COMM_WORLD, 3)
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize()
end program

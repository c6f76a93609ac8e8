! A program in Fortran that knows nothing of Tributary, with the interface of Fortran 2008.
program mpi_check_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 30001
  integer :: rank, ranks, i
  real :: values(n), sums(n)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  values = [(real(rank + 1 + mod(i, 100)), i = 1, n)]
  call MPI_Allreduce(values, sums, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
  do i = 1, n
    if (sums(i) /= ranks * (ranks + 1) / 2 + ranks * mod(i, 100)) call MPI_Abort(MPI_COMM_WORLD, 1)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
  if (any(values /= sums)) call MPI_Abort(MPI_COMM_WORLD, 1)
  values = rank
  call MPI_Bcast(values, n, MPI_REAL, 1, MPI_COMM_WORLD)
  if (any(values /= 1)) call MPI_Abort(MPI_COMM_WORLD, 1)
  values = rank
  call MPI_Iallreduce(values, sums, n, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (any(sums /= ranks - 1)) call MPI_Abort(MPI_COMM_WORLD, 1)
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize()
end program

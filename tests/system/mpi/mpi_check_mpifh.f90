! A program in Fortran that knows nothing of Tributary, with the old interface.
program mpi_check_mpifh
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 30001
  integer :: rank, ranks, error, i
  double precision :: values(n), sums(n)
  integer, allocatable :: numbers(:)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  values = [(dble(rank + 1 + mod(i, 100)), i = 1, n)]
  call MPI_Allreduce(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 2, error)
  do i = 1, n
    if (sums(i) /= ranks * (ranks + 1) / 2 + ranks * mod(i, 100)) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (any(values /= sums)) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  allocate(numbers(n))
  numbers = rank
  call MPI_Bcast(numbers, n, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  if (any(numbers /= 1)) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize(error)
end program

! A program in Fortran that knows nothing of Tributary, with the old interface.
program mpi_check_mpifh
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 30001
  integer :: rank, ranks, error, info, i
  double precision :: values(n), sums(n)
  integer, parameter :: m = 5000
  integer :: requests(2), counted(m)
  integer, allocatable :: numbers(:), parts(:), others(:), counts(:), places(:)
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
  deallocate(numbers)
  allocate(numbers(m), parts(m * ranks), others(m * ranks), counts(ranks), places(ranks))
  numbers = rank
  call MPI_Gather(numbers, m, MPI_INTEGER, parts, m, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  do i = 1, m * ranks
    if (rank == 1 .and. parts(i) /= (i - 1) / m) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  end do
  if (rank == 1) then
    call MPI_Scatter(parts, m, MPI_INTEGER, MPI_IN_PLACE, m, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  else
    call MPI_Scatter(parts, m, MPI_INTEGER, numbers, m, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  end if
  if (any(numbers /= rank)) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  call MPI_Allgather(numbers, m, MPI_INTEGER, parts, m, MPI_INTEGER, MPI_COMM_WORLD, error)
  call MPI_Alltoall(parts, m, MPI_INTEGER, others, m, MPI_INTEGER, MPI_COMM_WORLD, error)
  if (any(others /= rank)) call MPI_Abort(MPI_COMM_WORLD, 5, error)
  others = -1
  counts = m
  places = [(m * (i - 1), i = 1, ranks)]
  call MPI_Ialltoallv(parts, counts, places, MPI_INTEGER, others, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                      requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  if (any(others /= rank)) call MPI_Abort(MPI_COMM_WORLD, 7, error)
  places = [(m * (ranks - i), i = 1, ranks)]
  call MPI_Allgatherv(numbers, m, MPI_INTEGER, others, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
  do i = 1, m * ranks
    if (others(i) /= ranks - 1 - (i - 1) / m) call MPI_Abort(MPI_COMM_WORLD, 6, error)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, error)
  ! Two nonblocking calls are under way at once.
  numbers = rank + 1
  parts = rank
  call MPI_Ireduce(numbers, others, m, MPI_INTEGER, MPI_SUM, 2, MPI_COMM_WORLD, requests(1), error)
  call MPI_Ireduce_scatter_block(parts, counted, m, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  if (rank == 2 .and. any(others(1:m) /= ranks * (ranks + 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 8, error)
  if (any(counted /= ranks * (ranks - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 9, error)
  ! An exact sum keeps the small values, which a rounded sum loses beside the large ones.
  call MPI_Info_create(info, error)
  call MPI_Info_set(info, 'tributary_numerics', 'exact', error)
  call MPI_Comm_set_info(MPI_COMM_WORLD, info, error)
  call MPI_Info_free(info, error)
  values = merge(1d30, merge(-1d30, 1d0, rank == 2), rank == 0)
  call MPI_Allreduce(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (any(sums /= ranks - 2)) call MPI_Abort(MPI_COMM_WORLD, 7, error)
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize(error)
end program

! A program in Fortran that knows nothing of Tributary, with the interface of Fortran 2008.
program mpi_check_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 30001
  integer :: rank, ranks, i
  real :: values(n), sums(n)
  integer, parameter :: m = 5000
  integer, allocatable :: numbers(:), parts(:), others(:), counts(:), places(:)
  integer :: counted(m)
  type(MPI_Request) :: request, requests(2)
  type(MPI_Info) :: info
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
  allocate(numbers(m), parts(m * ranks), others(m * ranks), counts(ranks), places(ranks))
  numbers = rank
  call MPI_Gather(numbers, m, MPI_INTEGER, parts, m, MPI_INTEGER, 1, MPI_COMM_WORLD)
  do i = 1, m * ranks
    if (rank == 1 .and. parts(i) /= (i - 1) / m) call MPI_Abort(MPI_COMM_WORLD, 3)
  end do
  if (rank == 1) then
    call MPI_Scatter(parts, m, MPI_INTEGER, MPI_IN_PLACE, m, MPI_INTEGER, 1, MPI_COMM_WORLD)
  else
    call MPI_Scatter(parts, m, MPI_INTEGER, numbers, m, MPI_INTEGER, 1, MPI_COMM_WORLD)
  end if
  if (any(numbers /= rank)) call MPI_Abort(MPI_COMM_WORLD, 4)
  call MPI_Allgather(numbers, m, MPI_INTEGER, parts, m, MPI_INTEGER, MPI_COMM_WORLD)
  call MPI_Alltoall(parts, m, MPI_INTEGER, others, m, MPI_INTEGER, MPI_COMM_WORLD)
  if (any(others /= rank)) call MPI_Abort(MPI_COMM_WORLD, 5)
  others = -1
  counts = m
  places = [(m * (i - 1), i = 1, ranks)]
  call MPI_Ialltoallv(parts, counts, places, MPI_INTEGER, others, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                      requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  if (any(others /= rank)) call MPI_Abort(MPI_COMM_WORLD, 7)
  places = [(m * (ranks - i), i = 1, ranks)]
  call MPI_Allgatherv(numbers, m, MPI_INTEGER, others, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
  do i = 1, m * ranks
    if (others(i) /= ranks - 1 - (i - 1) / m) call MPI_Abort(MPI_COMM_WORLD, 6)
  end do
  ! Two nonblocking calls are under way at once.
  numbers = rank + 1
  parts = rank
  call MPI_Ireduce(numbers, others, m, MPI_INTEGER, MPI_SUM, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Ireduce_scatter_block(parts, counted, m, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (rank == 2 .and. any(others(1:m) /= ranks * (ranks + 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 8)
  if (any(counted /= ranks * (ranks - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 9)
  ! An exact sum keeps the small values, which a rounded sum loses beside the large ones.
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'tributary_numerics', 'exact')
  call MPI_Comm_set_info(MPI_COMM_WORLD, info)
  call MPI_Info_free(info)
  values = merge(1e30, merge(-1e30, 1.0, rank == 2), rank == 0)
  call MPI_Allreduce(values, sums, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
  if (any(sums /= ranks - 2)) call MPI_Abort(MPI_COMM_WORLD, 7)
  if (rank == 0) print '(a,i0,a)', 'all right on ', ranks, ' ranks'
  call MPI_Finalize()
end program

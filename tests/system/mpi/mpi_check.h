#pragma once
/* Tools of the programs in MPI that the tests run. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 20011 };

extern int rank, ranks;

void fail(const char* what, int line);
#define EXPECT(condition)                         \
  do {                                            \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

/* Returns zeroed memory. */
void* memory(size_t bytes);

/* The element of a rank, and the sum over the ranks of a communicator with `size` ranks. */
double element(int of, int i);
double sum(int size, int i);

/* MPI-4's persistent collectives. Open MPI 4 has them under names of its own. */
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

/* The other parts of the program. */
void parts(void);
void nonblocking_parts(void);
void exchanges_of_two_sizes(void);
void large_counts(void);
void unequal_counts(void);
void numerics(void);
void types_and_operations(void);
void persistent(void);
void under_load(void);
void until_file(const char* name);

/* The integers of every width by every operation that MPI has for them, and pairs of a value and an index. Each result
 * is compared with one that the program computes from the inputs of all ranks. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mpi_check.h"

/* Returns small numbers of both signs, many of them 0. */
static int number(int of, int i) {
  const int mixed = (of * 7919 + i * 104729 + 13) % 31;
  return mixed < 12 ? 0 : mixed - 20;
}

#define COMBINED(type, expression)        \
  {                                       \
    type a = (type)number(0, i);          \
    for (int of = 1; of < ranks; ++of) {  \
      const type b = (type)number(of, i); \
      a = (type)(expression);             \
    }                                     \
    EXPECT(found_all[i] == a);            \
  }

#define TRY(type, mpi_type, op, expression)                                             \
  do {                                                                                  \
    type* const given = memory(sizeof(type) * kCount);                                  \
    type* const found_all = memory(sizeof(type) * kCount);                              \
    for (int i = 0; i < kCount; ++i) given[i] = (type)number(rank, i);                  \
    EXPECT(MPI_Allreduce(given, found_all, kCount, mpi_type, op, MPI_COMM_WORLD) == 0); \
    for (int i = 0; i < kCount; ++i) COMBINED(type, expression)                         \
    free(given);                                                                        \
    free(found_all);                                                                    \
  } while (0)

#define TRY_BITS(type, mpi_type)          \
  do {                                    \
    TRY(type, mpi_type, MPI_BAND, a& b);  \
    TRY(type, mpi_type, MPI_BOR, a | b);  \
    TRY(type, mpi_type, MPI_BXOR, a ^ b); \
  } while (0)

#define TRY_TRUTH(type, mpi_type)                        \
  do {                                                   \
    TRY(type, mpi_type, MPI_LAND, a&& b);                \
    TRY(type, mpi_type, MPI_LOR, a || b);                \
    TRY(type, mpi_type, MPI_LXOR, (a != 0) != (b != 0)); \
  } while (0)

#define TRY_INTEGER(type, mpi_type)              \
  do {                                           \
    TRY(type, mpi_type, MPI_SUM, a + b);         \
    TRY(type, mpi_type, MPI_PROD, a* b);         \
    TRY(type, mpi_type, MPI_MIN, a < b ? a : b); \
    TRY(type, mpi_type, MPI_MAX, a < b ? b : a); \
    TRY_BITS(type, mpi_type);                    \
    TRY_TRUTH(type, mpi_type);                   \
  } while (0)

struct int_int {
  int value, index;
};
struct float_int {
  float value;
  int index;
};
struct short_int {
  short value;
  int index;
};
struct double_int {
  double value;
  int index;
};

/* Ranks have equal values in many places, and their indices fall with their numbers there, so that the rule for equal
 * values shows. */
#define FILL(given, value_type)                           \
  for (int i = 0; i < kCount; ++i) {                      \
    (given)[i].value = (value_type)number(rank, i);       \
    (given)[i].index = i % 2 ? -rank : rank * 10 + i % 3; \
  }
#define CHECK_PAIR(found, i, sign)                                       \
  {                                                                      \
    int best = 0;                                                        \
    for (int of = 1; of < ranks; ++of) {                                 \
      const int order = (sign) * (number(of, i) - number(best, i));      \
      const int of_index = (i) % 2 ? -of : of * 10 + (i) % 3;            \
      const int best_index = (i) % 2 ? -best : best * 10 + (i) % 3;      \
      if (order < 0 || (order == 0 && of_index < best_index)) best = of; \
    }                                                                    \
    EXPECT((int)(found).value == number(best, i));                       \
    EXPECT((found).index == ((i) % 2 ? -best : best * 10 + (i) % 3));    \
  }

#define TRY_PAIRS(type, value_type, mpi_type)                                                          \
  do {                                                                                                 \
    type* const given = memory(sizeof(type) * kCount);                                                 \
    type* const found_all = memory(sizeof(type) * kCount);                                             \
    FILL(given, value_type)                                                                            \
    EXPECT(MPI_Allreduce(given, found_all, kCount, mpi_type, MPI_MINLOC, MPI_COMM_WORLD) == 0);        \
    for (int i = 0; i < kCount; ++i) CHECK_PAIR(found_all[i], i, 1)                                    \
    memcpy(found_all, given, sizeof(type) * kCount);                                                   \
    EXPECT(MPI_Allreduce(MPI_IN_PLACE, found_all, kCount, mpi_type, MPI_MAXLOC, MPI_COMM_WORLD) == 0); \
    for (int i = 0; i < kCount; ++i) CHECK_PAIR(found_all[i], i, -1)                                   \
    free(given);                                                                                       \
    free(found_all);                                                                                   \
  } while (0)

static void pairs_at_a_root_and_in_parts(void) {
  struct int_int* const given = memory(sizeof *given * kCount);
  struct int_int* const found_all = memory(sizeof *found_all * kCount);
  FILL(given, int)
  for (int root = 0; root < ranks; ++root) {
    memset(found_all, 0, sizeof *found_all * kCount);
    MPI_Reduce(given, found_all, kCount, MPI_2INT, root % 2 ? MPI_MAXLOC : MPI_MINLOC, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < kCount; ++i) CHECK_PAIR(found_all[i], i, root % 2 ? -1 : 1)
    for (int i = 0; rank != root && i < kCount; ++i) EXPECT(found_all[i].value == 0 && found_all[i].index == 0);
  }
  const int part = kCount / ranks;
  MPI_Reduce_scatter_block(given, found_all, part, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
  for (int i = 0; i < part; ++i) CHECK_PAIR(found_all[i], rank * part + i, 1)
  MPI_Reduce_scatter_block(MPI_IN_PLACE, given, part, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  for (int i = 0; i < part; ++i) CHECK_PAIR(given[i], rank * part + i, -1)
  free(given);
  free(found_all);
}

/* The two zeros are equal, so the index decides between them. */
static void zeros_of_two_signs(void) {
  static struct float_int pairs[kCount];
  for (int i = 0; i < kCount; ++i) {
    pairs[i].value = rank == 0 ? 0.0F : -0.0F;
    pairs[i].index = rank;
  }
  MPI_Allreduce(MPI_IN_PLACE, pairs, kCount, MPI_FLOAT_INT, MPI_MINLOC, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(pairs[i].value == 0 && pairs[i].index == 0);
}

void types_and_operations(void) {
  TRY_INTEGER(int8_t, MPI_INT8_T);
  TRY_INTEGER(uint8_t, MPI_UINT8_T);
  TRY_INTEGER(short, MPI_SHORT);
  TRY_INTEGER(uint16_t, MPI_UINT16_T);
  TRY_INTEGER(int, MPI_INT);
  TRY_INTEGER(unsigned, MPI_UNSIGNED);
  TRY_INTEGER(int64_t, MPI_INT64_T);
  TRY_INTEGER(unsigned long, MPI_UNSIGNED_LONG);
  TRY_BITS(unsigned char, MPI_BYTE);
  TRY_TRUTH(bool, MPI_C_BOOL);
  TRY_BITS(MPI_Aint, MPI_AINT);
  TRY_PAIRS(struct int_int, int, MPI_2INT);
  TRY_PAIRS(struct float_int, float, MPI_FLOAT_INT);
  TRY_PAIRS(struct short_int, short, MPI_SHORT_INT);
  TRY_PAIRS(struct double_int, double, MPI_DOUBLE_INT); /* MPI's own: such a pair has more than 64 bits */
  zeros_of_two_signs();
  pairs_at_a_root_and_in_parts();
  MPI_Barrier(MPI_COMM_WORLD);
}

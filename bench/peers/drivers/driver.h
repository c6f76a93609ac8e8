/* One rank of one contestant, which bench/peers controls: the part that is the same for all contestants.
 *
 * A rank connects to the Unix socket that PEERS_CONTROL names (a path, so it works from inside a network namespace) and
 * exchanges lines:
 *
 *   rank -> bench   hello RANK PID PATH            PATH: how this contestant reduces, in one word
 *   bench -> rank   measure BYTES SAMPLES BATCH    answered by one of
 *   rank -> bench   result CPU_SECONDS NS NS ...   one NS per sample: the time of BATCH allreduces
 *   rank -> bench   wrong SENTENCE                 a sum was not right
 *   rank -> bench   failed SENTENCE                then the rank ends
 *   bench -> rank   end
 *
 * Between commands a rank sleeps in read(2), so contestants that wait take no time from the measured contestant.
 */
#ifndef TRIBUTARY_BENCH_PEERS_DRIVER_H_
#define TRIBUTARY_BENCH_PEERS_DRIVER_H_

#include <stddef.h>

/* The type of the measured values. */
enum element { kFloat32, kFloat16, kBfloat16 };

struct contestant {
  int rank;
  int ranks;
  const char* path;
  /* Makes the float32 sum over all ranks, in place, and returns when it is done. Returns 0, or another number after a
     failure that `why` explains. */
  int (*all_reduce)(void* context, float* values, size_t count);
  /* The same for `element`, which the measured values have; NULL: they are float32. */
  int (*all_reduce_elements)(void* context, void* values, size_t count);
  enum element element;
  const char* (*why)(void* context);
  void* context;
  /* Return memory for the values (NULL if none is left), and free it. If both are NULL, the driver uses anonymous
     memory. */
  void* (*allocate)(void* context, size_t bytes);
  void (*release)(void* context, void* memory);
};

/* Connects and serves commands until `end`. Returns the exit status of the process. */
int drive(const struct contestant* contestant);
/* Tells the bench why this contestant cannot take part. Returns the exit status of the process. */
int refuse(int rank, const char* sentence);

#endif

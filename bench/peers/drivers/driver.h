/* One rank of one contestant, as bench/peers drives it: the part that is the same for all of them.
 *
 * A rank connects to the Unix socket that PEERS_CONTROL names (a path: so it works from inside a network namespace) and
 * speaks lines:
 *
 *   rank -> bench   hello RANK PID PATH            PATH: how this contestant reduces, in one word
 *   bench -> rank   measure BYTES SAMPLES BATCH    answered by one of
 *   rank -> bench   result CPU_SECONDS NS NS ...   one NS per sample: the time of BATCH allreduces
 *   rank -> bench   wrong SENTENCE                 a sum was not what it must be
 *   rank -> bench   failed SENTENCE                then the rank ends
 *   bench -> rank   end
 *
 * Between commands a rank sleeps in read(2), so that contestants that wait cost the one that is measured nothing.
 */
#ifndef TRIBUTARY_BENCH_PEERS_DRIVER_H_
#define TRIBUTARY_BENCH_PEERS_DRIVER_H_

#include <stddef.h>

struct contestant {
  int rank;
  int ranks;
  const char* path;
  /* The float32 sum over all ranks, in place, done when it returns. 0, or a failure that `why` explains. */
  int (*all_reduce)(void* context, float* values, size_t count);
  const char* (*why)(void* context);
  void* context;
  /* Memory for the values, NULL if there is none, and its end. Both NULL: anonymous memory. */
  void* (*allocate)(void* context, size_t bytes);
  void (*release)(void* context, void* memory);
};

/* Connects and serves commands until `end`. Returns the exit status of the process. */
int drive(const struct contestant* contestant);
/* Tells the bench why this contestant cannot take part. Returns the exit status of the process. */
int refuse(int rank, const char* sentence);

#endif

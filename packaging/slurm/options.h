/* The text of `srun --tributary=lanes=2,path=in-network`, and the variables that it stands for. */
#ifndef TRIBUTARY_PACKAGING_SLURM_OPTIONS_H
#define TRIBUTARY_PACKAGING_SLURM_OPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kOptionsMax = 4, kOptionBytesMax = 32, kSentenceBytesMax = 1024 };

struct TributaryOption {
  const char* variable;
  char value[kOptionBytesMax];
};

struct TributaryOptions {
  size_t count;
  struct TributaryOption given[kOptionsMax];
};

/* Returns 0, or -1 with a sentence in `sentence`, of kSentenceBytesMax bytes. */
int tributary_read_options(const char* text, struct TributaryOptions* options, char* sentence);

#ifdef __cplusplus
}
#endif

#endif

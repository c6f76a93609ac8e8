/* The text of `srun --tributary=lanes=2,priority=high`, and the variables that it stands for. */
#ifndef TRIBUTARY_PACKAGING_SLURM_OPTIONS_H
#define TRIBUTARY_PACKAGING_SLURM_OPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kOptionsMax = 5, kOptionBytesMax = 32, kSentenceBytesMax = 1024 };

struct TributaryOption {
  const char* variable;
  int for_controller; /* 1: the prolog of the controller gets the variable, as SPANK_...; 0: the tasks get it */
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

/* Runs a command for a bounded time. */
#ifndef TRIBUTARY_PACKAGING_SLURM_COMMAND_H
#define TRIBUTARY_PACKAGING_SLURM_COMMAND_H

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `words`, which end with NULL, with `input` as its standard input (NULL: none), for at most kCommandSeconds
   (job_token.h). Returns 0 if the command has ended with 0, or -1 with its output in `sentence`, of
   kSentenceBytesMax bytes (options.h). */
int tributary_run_command(const char* const* words, const char* input, char* sentence);

#ifdef __cplusplus
}
#endif

#endif

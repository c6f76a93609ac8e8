/* A job's own copy of the job token, which only the job's user can read. */
#ifndef TRIBUTARY_PACKAGING_SLURM_JOB_TOKEN_H
#define TRIBUTARY_PACKAGING_SLURM_JOB_TOKEN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the path of a job's token, such as /run/tributary-jobs/1234.token; cuts it to `bytes`. */
void tributary_job_token_path(const char* directory, uint32_t job, char* path, size_t bytes);

/* Copies the token from `token_file`; makes `directory` where it is missing. Returns 0, or -1 with a sentence in
   `sentence`, of kSentenceBytesMax bytes (options.h). */
int tributary_make_job_token(const char* directory, uint32_t job, uid_t user, const char* token_file, char* sentence);

/* Removes the copy; a missing copy is no error. */
void tributary_remove_job_token(const char* directory, uint32_t job);

#ifdef __cplusplus
}
#endif

#endif

/* A job's own token, which only the job's user can read: a copy of the job token, or a token that the manager has made
   for the job. */
#ifndef TRIBUTARY_PACKAGING_SLURM_JOB_TOKEN_H
#define TRIBUTARY_PACKAGING_SLURM_JOB_TOKEN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "packaging/slurm/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kCommandSeconds = 5 };

/* Writes the path of a job's token, such as /run/tributary-jobs/1234.token; cuts it to `bytes`. */
void tributary_job_token_path(const char* directory, uint32_t job, char* path, size_t bytes);

/* Copies the token from `token_file`; makes `directory` if it is missing. Returns 0, or -1 with a sentence in
   `sentence`, of kSentenceBytesMax bytes (options.h). */
int tributary_make_job_token(const char* directory, uint32_t job, uid_t user, const char* token_file, char* sentence);

/* Asks the manager for a token that is valid only for groups of job slurm-JOB, of tenant `user`, and writes it to the
   same file as the function above. Waits for at most kCommandSeconds. */
int tributary_issue_job_token(const struct TributarySettings* settings, uint32_t job, uid_t user, char* sentence);

/* Asks the manager to revoke the token that the function above has made; a missing file is no error. */
int tributary_revoke_job_token(const struct TributarySettings* settings, uint32_t job, char* sentence);

/* Removes the file; a missing file is no error. */
void tributary_remove_job_token(const char* directory, uint32_t job);

#ifdef __cplusplus
}
#endif

#endif

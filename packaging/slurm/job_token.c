#include "packaging/slurm/job_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "packaging/slurm/options.h"

enum { kTokenBytesMax = 4096, kPathBytesMax = 512 };

static int failed(char* sentence, const char* what, const char* path) {
  (void)snprintf(sentence, kSentenceBytesMax, "%s %s: %s", what, path, strerror(errno));
  return -1;
}

/* Returns the bytes of the token, or -1. */
static ssize_t read_token(const char* path, char* token, char* sentence) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed(sentence, "cannot open the job token", path);
  const ssize_t bytes = read(file, token, kTokenBytesMax);
  (void)close(file);
  if (bytes < 0) return failed(sentence, "cannot read the job token", path);
  if (bytes > 0) return bytes;
  (void)snprintf(sentence, kSentenceBytesMax, "the job token %s is empty; copy it from the manager", path);
  return -1;
}

/* Other users may pass through the directory, but not list it. If another user owned it, that user
   could change it meanwhile. */
static int make_directory(const char* path, char* sentence) {
  struct stat status;
  if (mkdir(path, 0711) == 0) return chmod(path, 0711); /* whatever the umask */
  if (errno != EEXIST) return failed(sentence, "cannot make the directory", path);
  if (lstat(path, &status) != 0) return failed(sentence, "cannot look at the directory", path);
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 022) == 0) return 0;
  (void)snprintf(sentence, kSentenceBytesMax, "%s is no directory that this user alone can change; remove it", path);
  return -1;
}

void tributary_job_token_path(const char* directory, uint32_t job, char* path, size_t bytes) {
  (void)snprintf(path, bytes, "%s/%u.token", directory, job);
}

/* Fills the draft, which no other user can open yet, and gives it to the job's user. */
static int fill(int file, const char* token, size_t bytes, uid_t user) {
  if (write(file, token, bytes) != (ssize_t)bytes) return -1;
  return fchown(file, user, (gid_t)-1);
}

int tributary_make_job_token(const char* directory, uint32_t job, uid_t user, const char* token_file, char* sentence) {
  char token[kTokenBytesMax];
  char path[kPathBytesMax];
  char draft[kPathBytesMax + 8];
  const ssize_t bytes = read_token(token_file, token, sentence);
  if (bytes < 0 || make_directory(directory, sentence) != 0) return -1;
  tributary_job_token_path(directory, job, path, sizeof path);
  (void)snprintf(draft, sizeof draft, "%s.new", path);
  (void)unlink(draft); /* of a prolog that was killed */
  const int file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
  if (file < 0) return failed(sentence, "cannot make", draft);
  const int filled = fill(file, token, (size_t)bytes, user);
  (void)close(file);
  if (filled == 0 && rename(draft, path) == 0) return 0;
  (void)failed(sentence, "cannot write", path);
  (void)unlink(draft);
  return -1;
}

void tributary_remove_job_token(const char* directory, uint32_t job) {
  char path[kPathBytesMax];
  tributary_job_token_path(directory, job, path, sizeof path);
  (void)unlink(path);
}

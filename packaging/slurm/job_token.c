#include "packaging/slurm/job_token.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "packaging/slurm/command.h"
#include "packaging/slurm/options.h"

enum { kTokenBytesMax = 4096, kPathBytesMax = 512 };

static int failed(char* sentence, const char* what, const char* path) {
  (void)snprintf(sentence, kSentenceBytesMax, "%s %s: %s", what, path, strerror(errno));
  return -1;
}

/* Returns the token's number of bytes, or -1. */
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

/* Other users may pass through the directory, but not list it. Refuses a directory of another user,
   because this user could change it meanwhile. */
static int make_directory(const char* path, char* sentence) {
  struct stat status;
  if (mkdir(path, 0711) == 0) return chmod(path, 0711); /* the umask may have removed bits */
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

/* Gives the draft, which nobody else can open yet, to the job's user, under its own name. */
static int give(const char* draft, const char* path, uid_t user, char* sentence) {
  if (chown(draft, user, (gid_t)-1) == 0 && chmod(draft, 0400) == 0 && rename(draft, path) == 0) return 0;
  (void)failed(sentence, "cannot write", path);
  (void)unlink(draft);
  return -1;
}

/* The tenant is the user's name, or the user's number if the system knows no name. */
static void tenant_of(uid_t user, char* name, size_t bytes) {
  char buffer[4096];
  struct passwd entry;
  struct passwd* found = NULL;
  if (getpwuid_r(user, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL && strlen(found->pw_name) < bytes) {
    (void)snprintf(name, bytes, "%s", found->pw_name);
  } else {
    (void)snprintf(name, bytes, "user-%u", (unsigned)user);
  }
}

/* Tells the command which CA must have signed the certificate of a manager that speaks HTTPS. */
static void believe(const struct TributarySettings* settings) {
  if (settings->tls_ca[0] != '\0') (void)setenv("TRIBUTARY_TLS_CA", settings->tls_ca, 1);
}

int tributary_issue_job_token(const struct TributarySettings* settings, uint32_t job, uid_t user, char* sentence) {
  char path[kPathBytesMax];
  char draft[kPathBytesMax + 8];
  char tenant[64];
  char name[32];
  if (make_directory(settings->job_directory, sentence) != 0) return -1;
  tributary_job_token_path(settings->job_directory, job, path, sizeof path);
  (void)snprintf(draft, sizeof draft, "%s.new", path);
  (void)unlink(draft); /* of a prolog that was killed */
  tenant_of(user, tenant, sizeof tenant);
  (void)snprintf(name, sizeof name, "slurm-%u", job);
  const char* const words[] = {settings->command,
                               "token",
                               "make",
                               "--manager",
                               settings->manager,
                               "--token-file",
                               settings->token_file,
                               "--time-limit",
                               "2",
                               "--tenant",
                               tenant,
                               "--job",
                               name,
                               "--life",
                               settings->job_token_life,
                               "--output-file",
                               draft,
                               NULL};
  believe(settings);
  if (tributary_run_command(words, NULL, sentence) != 0) {
    (void)unlink(draft);
    return -1;
  }
  return give(draft, path, user, sentence);
}

int tributary_revoke_job_token(const struct TributarySettings* settings, uint32_t job, char* sentence) {
  char path[kPathBytesMax];
  tributary_job_token_path(settings->job_directory, job, path, sizeof path);
  if (access(path, F_OK) != 0) return 0;
  /* The token must not be an argument: other users would see it. */
  const char* const words[] = {
      settings->command, "token", "revoke", "--manager", settings->manager, "--token-file", settings->token_file,
      "--time-limit",    "2",     "-",      NULL};
  believe(settings);
  return tributary_run_command(words, path, sentence);
}

void tributary_remove_job_token(const char* directory, uint32_t job) {
  char path[kPathBytesMax];
  tributary_job_token_path(directory, job, path, sizeof path);
  (void)unlink(path);
}

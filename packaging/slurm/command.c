#include "packaging/slurm/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "packaging/slurm/job_token.h"
#include "packaging/slurm/options.h"

static long milliseconds_now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec * 1000) + (now.tv_nsec / 1000000);
}

/* Starts the command, whose standard output and error go to `output`. Returns 0, or the number of the error. */
static int start(const char* const* words, const char* input, int output, pid_t* process) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
  int error =
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input == NULL ? "/dev/null" : input, O_RDONLY, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  if (error == 0) error = posix_spawn(process, words[0], &actions, NULL, (char* const*)words, environ);
  (void)posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* Reads the command's output until its end. Returns 0, or -1 if the time is over. */
static int listen_to(int input, char* said, size_t bytes) {
  const long end = milliseconds_now() + (kCommandSeconds * 1000L);
  size_t length = 0;
  char rest[256];
  said[0] = '\0';
  for (;;) {
    struct pollfd ready = {.fd = input, .events = POLLIN};
    const long left = end - milliseconds_now();
    if (left <= 0) return -1;
    if (poll(&ready, 1, (int)left) <= 0) continue;
    const int full = length + 1 >= bytes;
    const ssize_t got = full ? read(input, rest, sizeof rest) : read(input, said + length, bytes - length - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    if (full) continue;
    length += (size_t)got;
    said[length] = '\0';
  }
}

int tributary_run_command(const char* const* words, const char* input, char* sentence) {
  int ends[2];
  pid_t process = -1;
  int status = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    (void)snprintf(sentence, kSentenceBytesMax, "there is no pipe: %s", strerror(errno));
    return -1;
  }
  const int error = start(words, input, ends[1], &process);
  (void)close(ends[1]);
  if (error != 0) {
    (void)close(ends[0]);
    (void)snprintf(sentence, kSentenceBytesMax, "%s cannot be started: %s", words[0], strerror(error));
    return -1;
  }
  const int late = listen_to(ends[0], sentence, kSentenceBytesMax);
  (void)close(ends[0]);
  if (late != 0) (void)kill(process, SIGKILL);
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  sentence[strcspn(sentence, "\n")] = '\0';
  if (late == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  if (late != 0) (void)snprintf(sentence, kSentenceBytesMax, "%s did not end within %d s", words[0], kCommandSeconds);
  if (sentence[0] == '\0') (void)snprintf(sentence, kSentenceBytesMax, "%s failed", words[0]);
  return -1;
}

#include "client/cli/cluster/guardian.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

namespace tributary::cli {
namespace {

/// A message to the guardian. One write of it is atomic, because it is much shorter than PIPE_BUF.
struct Message {
  char what;  // 'w'atch, 'f'orget, 'k'eep the folder
  pid_t group;
};

bool read_message(int pipe, Message& message) {
  ssize_t got = 0;
  do {
    got = read(pipe, &message, sizeof message);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof message);
}

/// Closes all inherited descriptors except the pipe: the terminal, and pipes whose readers wait for their end.
void let_go_of_parent(int pipe) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "tributary-guard");
  if (pipe > 0) close_range(0, static_cast<unsigned>(pipe) - 1, 0);
  close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
}

[[noreturn]] void stand_guard(int pipe, std::string folder) {
  let_go_of_parent(pipe);
  std::set<pid_t> groups;
  for (Message message{}; read_message(pipe, message);) {
    if (message.what == 'w') groups.insert(message.group);
    if (message.what == 'f') groups.erase(message.group);
    if (message.what == 'k') folder.clear();
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  std::error_code ignored;
  // Try several times, because killed processes may still write until they are gone.
  for (int attempt = 0; !folder.empty() && attempt < 50; ++attempt) {
    std::filesystem::remove_all(folder, ignored);
    if (!std::filesystem::exists(folder, ignored)) break;
    usleep(20'000);
  }
  _exit(0);
}

}  // namespace

Result<Guardian> Guardian::start(const std::string& folder) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(Errc::io, std::string("a pipe could not be made: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    stand_guard(ends[0], folder);
  }
  const int fork_errno = errno;
  close(ends[0]);
  if (pid > 0) return Guardian(pid, ends[1]);
  close(ends[1]);
  return fail(Errc::io, std::string("a process could not be made: ") + std::strerror(fork_errno));
}

Guardian::Guardian(Guardian&& from) noexcept
    : pid_(std::exchange(from.pid_, -1)), pipe_(std::exchange(from.pipe_, -1)) {}

Guardian::~Guardian() {
  if (pid_ < 0) return;
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::tell(char what, pid_t group) const noexcept {
  Message message{};
  message.what = what;
  message.group = group;
  static_cast<void>(!write(pipe_, &message, sizeof message));
}

void Guardian::watch(pid_t group) const noexcept {
  tell('w', group);
}
void Guardian::forget(pid_t group) const noexcept {
  tell('f', group);
}
void Guardian::keep_folder() const noexcept {
  tell('k', 0);
}

}  // namespace tributary::cli

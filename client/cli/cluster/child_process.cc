#include "client/cli/cluster/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "client/cli/cluster/guardian.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

constexpr auto kPollPeriod = std::chrono::milliseconds(5);
constexpr const char* kPathDefault = "/usr/local/bin:/usr/bin:/bin";

bool is_program(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

/// Returns the file to execute; empty if there is none.
std::string look_up(const std::string& program, const Environment& environment) {
  if (program.contains('/')) return is_program(program) ? program : std::string();
  const auto found = environment.find("PATH");
  std::string_view folders = found == environment.end() ? kPathDefault : std::string_view(found->second);
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string folder(folders.substr(0, colon));
    std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (is_program(path)) return path;
    if (colon == std::string_view::npos) return {};
    folders.remove_prefix(colon + 1);
  }
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> assignments(const Environment& environment) {
  std::vector<std::string> list;
  for (const auto& [name, value] : environment) list.push_back(name + "=" + value);
  return list;
}

/// The code between fork and exec: it makes only calls that are safe between them.
struct Child {
  const char* path;
  char** arguments;
  char** environment;
  int output, error;
  int failure;  // if exec fails, the child writes errno here; a successful exec closes it
  pid_t parent;
  const Guardian* guardian;
  const ChildHost* host;

  [[noreturn]] void give_up() const {
    const int reason = errno;
    static_cast<void>(!write(failure, &reason, sizeof reason));
    _exit(127);
  }

  [[nodiscard]] bool move_to_host() const {
    if (host->network >= 0 && setns(host->network, CLONE_NEWNET) != 0) return false;
    return host->name.empty() || (unshare(CLONE_NEWUTS) == 0 && sethostname(host->name.data(), host->name.size()) == 0);
  }

  [[noreturn]] void run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent died before prctl()
    // Register the child itself: if the parent dies before it can register the group, the child's children could live
    // on.
    if (guardian != nullptr) guardian->watch(getpid());
    if (!move_to_host()) give_up();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    const int empty = open("/dev/null", O_RDONLY);
    if (empty < 0 || dup2(empty, STDIN_FILENO) < 0) give_up();
    if (empty != STDIN_FILENO) close(empty);
    if (output >= 0 && dup2(output, STDOUT_FILENO) < 0) give_up();
    if (error >= 0 && dup2(error, STDERR_FILENO) < 0) give_up();
    execve(path, arguments, environment);
    give_up();
  }
};

}  // namespace

Environment current_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equal = text.find('=');
    if (equal != std::string_view::npos)
      result.emplace(std::string(text.substr(0, equal)), std::string(text.substr(equal + 1)));
  }
  return result;
}

std::string to_string(const ExitStatus& status) {
  if (status.signal == 0) return "ended with exit code " + std::to_string(status.code);
  return "was killed by signal " + std::to_string(status.signal) + " (" + strsignal(status.signal) + ")";
}

Result<ChildProcess> ChildProcess::spawn(const SpawnRequest& request) {
  const std::string path = look_up(request.arguments.at(0), request.environment);
  if (path.empty()) {
    return fail(Errc::bad_argument, "'" + request.arguments[0] +
                                        "' cannot be run: there is no such executable file, neither at this path nor "
                                        "in PATH");
  }
  auto arguments = request.arguments;
  auto variables = assignments(request.environment);
  const auto argument_list = pointers(arguments);
  const auto variable_list = pointers(variables);
  std::array<int, 2> failure{};
  if (pipe2(failure.data(), O_CLOEXEC) != 0)
    return fail(Errc::io, std::string("a pipe could not be made: ") + std::strerror(errno));
  const Child child{path.c_str(),
                    const_cast<char**>(argument_list.data()),
                    const_cast<char**>(variable_list.data()),
                    request.output,
                    request.error,
                    failure[1],
                    getpid(),
                    request.guardian,
                    &request.host};
  const pid_t pid = fork();
  if (pid == 0) child.run();
  const int fork_errno = errno;
  close(failure[1]);
  int reason = 0;
  if (pid < 0) {
    close(failure[0]);
    return fail(Errc::io, std::string("a process could not be made: ") + std::strerror(fork_errno));
  }
  setpgid(pid, pid);  // the child does the same, because either process may be first
  ssize_t got = 0;
  do {
    got = read(failure[0], &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  close(failure[0]);
  ChildProcess made(pid);
  if (got == 0) return made;
  made.kill();
  if (request.guardian != nullptr) request.guardian->forget(pid);
  return fail(Errc::bad_argument, "'" + path + "' cannot be run: " + std::strerror(reason));
}

ChildProcess::ChildProcess(ChildProcess&& from) noexcept
    : pid_(std::exchange(from.pid_, -1)), status_(std::exchange(from.status_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& from) noexcept {
  if (this == &from) return *this;
  kill();
  pid_ = std::exchange(from.pid_, -1);
  status_ = std::exchange(from.status_, std::nullopt);
  return *this;
}

ChildProcess::~ChildProcess() {
  kill();
}

// Reaps the child. Kills its group first: until the child is reaped, the system gives the group's number to no other
// process.
const std::optional<ExitStatus>& ChildProcess::reap(int options) {
  if (pid_ <= 0 || status_) return status_;
  siginfo_t info{};
  int failed = 0;
  do {
    failed = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | options);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0 || info.si_pid != pid_) return status_;
  TRIBUTARY_ASSERT(info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED,
                   "process {} has not ended: code {}", pid_, info.si_code);
  ::kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  status_ = info.si_code == CLD_EXITED ? ExitStatus{.code = info.si_status} : ExitStatus{.signal = info.si_status};
  return status_;
}

const std::optional<ExitStatus>& ChildProcess::poll() {
  return reap(WNOHANG);
}

const std::optional<ExitStatus>& ChildProcess::wait_until(std::chrono::steady_clock::time_point deadline) {
  while (!poll() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kPollPeriod);
  return status_;
}

void ChildProcess::signal(int number) const noexcept {
  if (pid_ > 0 && !status_) ::kill(-pid_, number);
}

void ChildProcess::kill() noexcept {
  if (pid_ <= 0 || status_) return;
  signal(SIGKILL);
  ::kill(pid_, SIGKILL);  // kill the child itself, too: it may not have made its group yet
  static_cast<void>(reap(0));
}

}  // namespace tributary::cli

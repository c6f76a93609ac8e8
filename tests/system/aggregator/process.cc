#include "tests/system/aggregator/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tributary::aggregator::test {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, std::string log, const std::vector<std::string>& environment)
    : pid_(-1), log_(std::move(log)) {
  // The system kills the process if the test process dies.
  std::vector<std::string> arguments{"/usr/bin/setpriv", "--pdeathsig", "KILL"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  std::vector<std::string> variables = environment;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  const int error = ::posix_spawn(&pid_, arguments.front().c_str(), &files, nullptr, pointers_to(arguments).data(),
                                  pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + command.front());
}

Process::~Process() {
  if (!running()) return;
  signal(SIGKILL);
  (void)wait(std::chrono::seconds(5));
}

void Process::signal(int number) const {
  if (!exit_) ::kill(pid_, number);
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) {
  (void)eventually(
      [this] {
        int status = 0;
        if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
          exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        return exit_.has_value();
      },
      limit);
  return exit_;
}

std::string Process::output() const {
  return text_of_file(log_);
}

std::size_t Process::open_files() const {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

std::uint64_t Process::resident_bytes() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool eventually(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tributary-aggregator-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text, mode_t mode) const {
  std::ofstream(file(name)) << text;
  ::chmod(file(name).c_str(), mode);
  return file(name);
}

std::string text_of_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace tributary::aggregator::test

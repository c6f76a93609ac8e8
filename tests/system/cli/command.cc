#include "tests/system/cli/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "client/cli/cluster/machine.h"

namespace tributary::cli_test {
namespace {

constexpr const char* kMark = "TRIBUTARY_TEST_MARK";  // in the environment of every process that a command starts

int open_output(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error(path + " cannot be written");
  return file;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// True if the process was killed, and waits only for a processor in order to end.
bool is_dying(const std::filesystem::path& process) {
  constexpr unsigned long kKilled = 1UL << (SIGKILL - 1);
  std::istringstream status(read_file(process / "status"));
  for (std::string word; status >> word;) {
    if (word != "SigPnd:" && word != "ShdPnd:") continue;
    status >> word;
    if ((std::stoul(word, nullptr, 16) & kKilled) != 0) return true;
  }
  return false;
}

}  // namespace

Workplace::Workplace() {
  auto folder = cli::make_private_folder();
  if (!folder) throw std::runtime_error(folder.error().message);
  folder_ = *folder;
  temporary_ = folder_ + "/tmp";
  std::filesystem::create_directory(temporary_);
  // Variables that the user or the test's launcher has set must have no effect.
  variables = cli::current_environment();
  std::erase_if(variables, [](const auto& entry) {
    return entry.first.starts_with("TRIBUTARY_") || entry.first.starts_with("SLURM_") || entry.first == "RANK" ||
           entry.first == "WORLD_SIZE" || entry.first.starts_with("MASTER_");
  });
  variables["TMPDIR"] = temporary_;
  variables[kMark] = folder_;
  variables["TRIBUTARY_LOG"] = "warn";
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

cli::ChildProcess Workplace::start(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{TRIBUTARY_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const int output = open_output(path("output"));
  const int error = open_output(path("error"));
  auto process = cli::ChildProcess::spawn({command, variables, output, error});
  close(output);
  close(error);
  if (!process) throw std::runtime_error(process.error().message);
  return std::move(*process);
}

Outcome Workplace::finish(cli::ChildProcess process, std::chrono::seconds limit) const {
  if (!process.wait_until(std::chrono::steady_clock::now() + limit)) process.kill();
  return {process.status()->shell_code(), read_file(path("output")), read_file(path("error"))};
}

Outcome Workplace::tributary(const std::vector<std::string>& arguments, std::chrono::seconds limit) const {
  return finish(start(arguments), limit);
}

std::string Workplace::left_behind() const {
  std::string found;
  const std::string mark = std::string(kMark) + "=" + folder_;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (!is_number(name) || name == std::to_string(getpid())) continue;
    if (!read_file(entry.path() / "environ").contains(mark) || is_dying(entry.path())) continue;
    std::string words = read_file(entry.path() / "cmdline");
    std::replace(words.begin(), words.end(), '\0', ' ');
    found += "process " + name + ": " + words + "\n";
  }
  for (const auto& entry : std::filesystem::directory_iterator(temporary_, ignored)) {
    // ThreadSanitizer's own file, if a program is killed while the sanitizer starts.
    if (entry.path().filename().string().starts_with("tsan.rodata.")) continue;
    found += "file " + entry.path().string() + "\n";
  }
  return found;
}

std::string Workplace::left_behind_after(std::chrono::seconds limit) const {
  static_cast<void>(eventually([this] { return left_behind().empty(); }, limit));
  return left_behind();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace tributary::cli_test
